Every open call of a killed harness is closed once, with a reason, its callback prompt expires, and its turn is
interrupted. No view shows that as a success, a failure or a person's stop (R1, R4, N1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
4 tool.started {"call":"c2","turn":"t1","name":"edit"}
5 tool.started {"call":"c3","turn":"t1","name":"server","background":true}
6 prompt.requested {"prompt":"p1","turn":"t1","call":"c2","kind":"permission","delivery":"callback"}
-- owner --
dead
-- decide @60s --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 prompt.expired {"prompt":"p1","reason":"owner-lost"}
7 tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
7 tool.interrupted {"call":"c2","reason":"owner-lost","outcome":"unknown"}
7 tool.interrupted {"call":"c3","reason":"owner-lost","outcome":"unknown"}
7 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
interrupted last=t1,interrupted,owner-lost
