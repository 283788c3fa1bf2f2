A deadline passes while nobody owns the session: the prompt expires, its call fails with that reason, and the conversation
goes on once (P19).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","deadline":"2026-03-01T12:00:30Z","questions":[{"id":"q","question":"Which?"}]}
-- owner --
dead
-- at --
20
-- decide --
s session.orphaned {"reason":"owner-lost","incarnation":"17"}
s look 30
-- at --
31
-- decide --
s prompt.expired {"prompt":"p1","reason":"deadline"}
s tool.failed {"call":"ask","error":{"kind":"expired","text":"deadline"},"synthetic":true}
s turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
s queued turn=t1 pending=answer
