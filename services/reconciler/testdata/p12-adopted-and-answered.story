A process adopts a turn and its question, which was answered meanwhile. When the process is ready, recovery leaves both
to it and requests no continuation: the turn belongs to a live owner (P12, R7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
5 session.claimed {"incarnation":"18"}
6 turn.started {"turn":"t1","cause":"message"}
-- owner --
alive
-- decide @60s --
(none)
-- state --
running owned-by=18 turn=t1,message prompt=p1,answered
