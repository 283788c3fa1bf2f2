A closed session has nothing open, and is never continued (R10, P15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
4/ledger session.closed {"reason":"archived","by":"user-1"}
-- owner --
dead
-- at --
60
-- decide --
nothing
-- state --
s closed last=t1,stopped,session-closed
