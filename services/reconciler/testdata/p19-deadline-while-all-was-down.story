A deadline passed while all processes were down: one commit fences, expires the prompt, fails the call and continues
(P19).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","deadline":"@30s","questions":[{"id":"q","question":"Which?"}]}
-- owner --
dead
-- decide @4000s --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 prompt.expired {"prompt":"p1","reason":"deadline"}
5 tool.failed {"call":"ask","error":{"kind":"expired","text":"deadline"},"synthetic":true}
5 turn.requested {"turn":"turn-hyh4ne5gxwnswizoobcy","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
queued turn=t1,message requested=turn-hyh4ne5gxwnswizoobcy,answer,of=t1
