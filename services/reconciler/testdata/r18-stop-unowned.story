Recovery carries out a stop of a turn that waits for a person in a session without an owner, in the name of the same
actor (R18).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
-- owner --
dead
-- decide @60s --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- facts --
70 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"user-1","reason":"enough"}
-- decide @60s --
71 turn.stopped {"turn":"t1","actor":"person","reason":"enough"}
-- state --
idle last=t1,stopped,enough
