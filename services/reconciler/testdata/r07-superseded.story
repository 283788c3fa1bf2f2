A newer incarnation that is ready without claiming the session supersedes the old one: the fence names it, so that the
old one cannot claim the session (R6, R7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- owner --
dead 18
-- decide @10s --
4 session.orphaned {"reason":"owner-lost","incarnation":"17","superseded_by":"18"}
4 tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
interrupted last=t1,interrupted,owner-lost
