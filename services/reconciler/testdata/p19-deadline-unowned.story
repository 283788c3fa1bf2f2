A deadline passes in a session without an owner: the prompt expires, its call fails with that reason, and the
conversation continues once (P19).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","deadline":"@30s","questions":[{"id":"q","question":"Which?"}]}
-- owner --
dead
-- decide @20s --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
look @30s
-- decide @31s --
6 prompt.expired {"prompt":"p1","reason":"deadline"}
6 tool.failed {"call":"ask","error":{"kind":"expired","text":"deadline"},"synthetic":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
queued turn=t1,message requested=turn-z3ao44pwarq65qsh3etl,answer,of=t1
