A deadline passes while the owner is alive: the prompt expires, and the harness, which reads that in its view, closes
the call (P19).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","deadline":"@30s","questions":[{"id":"q","question":"Which?"}]}
-- owner --
alive
-- decide @29s --
look @30s
-- decide @30s --
5 prompt.expired {"prompt":"p1","reason":"deadline"}
-- state --
running owned-by=17 turn=t1,message call=ask prompt=p1,expired
