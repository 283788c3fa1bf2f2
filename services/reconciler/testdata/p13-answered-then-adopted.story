A prompt was answered, its asker died, and a new incarnation claimed the session and adopted the call that waits for the
answer: it finds the answer by the prompt's id and closes the call, so recovery leaves both alone (P13, §2.3, N4).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
6 session.claimed {"incarnation":"18"}
6 turn.started {"turn":"t1","cause":"message"}
6 tool.started {"call":"ask","turn":"t1","name":"question"}
-- owner --
alive
-- decide @10s --
(none)
-- state --
running owned-by=18 turn=t1,message call=ask prompt=p1,answered
-- facts --
11 tool.completed {"call":"ask","output":"blue"}
-- decide @12s --
(none)
-- state --
running owned-by=18 turn=t1,message
