With resume hold, a turn that was interrupted stays so: nothing is requested (R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
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
-- state --
s interrupted last=t1,interrupted,owner-lost
