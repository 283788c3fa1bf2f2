With policy hold an interrupted turn stays interrupted: nothing is requested (R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- owner --
dead
-- decide @60s --
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
interrupted last=t1,interrupted,owner-lost
