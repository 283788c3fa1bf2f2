A result that comes after recovery closed its call calls for nothing: it is late, and no second ending (R5).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- owner --
dead
-- at --
60
-- decide --
s session.orphaned {"reason":"owner-lost","incarnation":"17"}
s tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
s turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- facts --
late 5 tool.completed {"call":"c1","output":"done"}
6 session.claimed {"incarnation":"18"}
-- owner --
alive
-- decide --
nothing
-- state --
s interrupted owned-by=18 last=t1,interrupted,owner-lost late=c1,interrupted
