Two questions without calls are answered before recovery: the one continuation names both (P13, P18).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
4 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"When?"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"p2","answers":[{"question":"q","selected":[],"text":"now"}],"by":"user-1"}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
-- owner --
dead
-- decide @60s --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","message":"m1","prompt":"p1","prompts":["p2","p1"]}
-- state --
queued turn=t1,message prompt=p1,answered prompt=p2,answered requested=turn-shfzy35gxxwiyxqjd2da,answer,of=t1,message=m1
