A closed session has nothing open, and is never continued (R10, P15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
4 by=ledger session.closed {"reason":"archived","by":"user-1"}
-- owner --
dead
-- decide @60s --
(none)
-- state --
closed last=t1,stopped,session-closed
