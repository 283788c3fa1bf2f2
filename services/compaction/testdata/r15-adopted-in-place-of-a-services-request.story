A person stops a session, and the agent begins a turn of its own, whose process is gone. Its question expires, and the
reconciler requests a turn that continues it. A process adopts the open turn in place of the requested one. No person has
continued the session, so the message that was queued before the stop waits, also after a crash (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 message.accepted {"message":"m1","content":"next"}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 turn.stopped {"turn":"t1","actor":"person"}
6 turn.started {"turn":"own","cause":"message","synthetic":true}
7 prompt.requested {"prompt":"p1","turn":"own","kind":"question","delivery":"callback","on_owner_loss":"keep"}
8 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
9 by=reconciler prompt.expired {"prompt":"p1","reason":"deadline"}
9 by=reconciler turn.requested {"turn":"t2","cause":"answer","of_turn":"own","prompt":"p1","prompts":["p1"]}
10 session.claimed {"incarnation":"18"}
11 turn.started {"turn":"own","cause":"message","synthetic":true}
12 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"18"}
12 by=reconciler turn.interrupted {"turn":"own","reason":"owner-lost"}
13 session.claimed {"incarnation":"19"}
14 by=retry turn.requested {"turn":"t3","cause":"resume","of_turn":"own"}
15 turn.started {"turn":"t3","cause":"resume","of_turn":"own"}
16 turn.completed {"turn":"t3"}
-- decide @17s --
(none)
