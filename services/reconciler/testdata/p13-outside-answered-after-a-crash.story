A turn has a message. A question outside of any turn waits. The process dies, and a person answers. The resume of the
turn goes first, and names the decision (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 by=harness message.accepted {"message":"m0","content":"do it","synthetic":true}
3 by=harness turn.started {"turn":"t1","cause":"message","message":"m0","options":{"model":"x"}}
-- owner --
dead
-- decide @60s --
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
waiting last=t1,interrupted,owner-lost prompt=p0,awaiting
-- facts --
61 by=ledger prompt.answered {"owed":true,"prompt":"p0","answers":[],"by":"ada"}
-- decide @70s --
(none)
-- state retry last_turn queue --
retry: (nothing)
last_turn: {"id":"t1","outcome":"interrupted","reason":"owner-lost","at":"@60s","message":"m0","message_seq":3,"options":{"model":"x"},"cause":"message","attempt":1,"synthetic":true,"had_output":false,"seq":4}
queue: (nothing)
-- work turn --
(none)
-- facts --
70 by=retry turn.requested {"turn":"r1","cause":"resume","of_turn":"t1","message":"m0","attempt":1,"prompts":["p0"]}
71 session.claimed {"incarnation":"18"}
71 turn.started {"turn":"r1"}
72 turn.completed {"turn":"r1"}
-- owner --
alive
-- decide @100s --
(none)
-- state --
idle owned-by=18 last=r1,completed
