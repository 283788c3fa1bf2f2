A call in the background asks while a turn runs for a person's message. The process dies, and the question blocks the
resume. The person answers: the resume goes first, and names the decision (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t0","cause":"message","synthetic":true}
2 tool.started {"call":"c1","turn":"t0","name":"watch","background":true}
3 turn.completed {"turn":"t0"}
4 by=harness message.accepted {"message":"m0","content":"fix the login","by":"ada"}
4 by=harness turn.started {"turn":"t1","cause":"message","message":"m0","options":{"model":"x"}}
5 prompt.requested {"prompt":"p1","call":"c1","kind":"question","delivery":"tool-result"}
-- owner --
dead
-- decide @60s --
6 session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
waiting last=t1,interrupted,owner-lost call=c1 prompt=p1,awaiting
-- facts --
61 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
61 by=ledger tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
-- decide @70s --
(none)
-- state retry last_turn queue --
retry: (nothing)
last_turn: {"id":"t1","outcome":"interrupted","reason":"owner-lost","at":"@60s","message":"m0","message_seq":4,"options":{"model":"x"},"cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":6}
queue: (nothing)
-- work turn --
(none)
-- facts --
70 by=retry turn.requested {"turn":"r1","cause":"resume","of_turn":"t1","message":"m0","attempt":1,"prompts":["p1"]}
71 session.claimed {"incarnation":"18"}
71 turn.started {"turn":"r1"}
72 turn.completed {"turn":"r1"}
-- owner --
alive
-- decide @100s --
(none)
-- state --
idle owned-by=18 last=r1,completed
