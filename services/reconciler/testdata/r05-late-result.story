A result that arrives after recovery closed its call is late: it has no effect and is no second end (R5).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- owner --
dead
-- decide @60s --
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- facts --
5 late @5s tool.completed {"call":"c1","output":"done"}
6 @6s session.claimed {"incarnation":"18"}
-- owner --
alive
-- decide --
(none)
-- state --
interrupted owned-by=18 last=t1,interrupted,owner-lost late=c1,interrupted
