The deadline passed while everything was down: one commit fences, expires, fails the call and goes on (P19).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","deadline":"2026-03-01T12:00:30Z","questions":[{"id":"q","question":"Which?"}]}
-- owner --
dead
-- at --
4000
-- decide --
s session.orphaned {"reason":"owner-lost","incarnation":"17"}
s prompt.expired {"prompt":"p1","reason":"deadline"}
s tool.failed {"call":"ask","error":{"kind":"expired","text":"deadline"},"synthetic":true}
s turn.requested {"turn":"turn-hyh4ne5gxwnswizoobcy","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
s queued turn=t1 pending=answer
