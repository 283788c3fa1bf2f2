A claim after a lost lease takes several commits, and recovery ends the turn before the last of them. An Ask that waited
in that turn may end with it, so the claim's word that it waits does not count: the turn that is requested for the
decision stays (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
-- request @12s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
3 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
-- facts --
14 session.claimed {"incarnation":"18"}
15 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- request @16s --
continue {"ofturn":"t1"}
-- result --
16 turn.requested {"turn":"turn-edb2ufayhsfpsh2gcgxc","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- facts --
17 prompt.attended {"prompt":"p1"}
-- ignored --
17: 1, the last prompt.attended by harness: turn-ended
-- state pending --
pending: {"turn":{"turn":"turn-edb2ufayhsfpsh2gcgxc","cause":"answer","of_turn":"t1","attempt":0,"prompt":"p1","prompts":[{"prompt":"p1","status":"answered","seq":3,"asked":2}],"at":"@16s","seq":16}}
