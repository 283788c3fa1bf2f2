A process has adopted one of two questions with calls, and their turn with it. The call of the other one ends with its
answer; the owner runs the turn, and no other turn continues it (P12, R7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 tool.started {"call":"c2","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
3 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"question","delivery":"tool-result"}
4 by=ledger prompt.answered {"owed":true,"prompt":"p2","answers":[],"by":"user-1"}
5 session.claimed {"incarnation":"18"}
5 tool.started {"call":"c1","turn":"t1","name":"ask"}
5 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"user-1"}
-- owner --
alive
-- decide @10s --
7 tool.completed {"call":"c2","output":{"questions":[],"answers":[]},"synthetic":true}
-- state --
running owned-by=18 turn=t1,message call=c1 prompt=p1,answered prompt=p2,answered
