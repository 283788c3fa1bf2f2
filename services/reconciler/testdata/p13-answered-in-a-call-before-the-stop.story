A person answers a question of a call in the background, and stops the session after its turn has failed. The process dies before it
has read the answer. The call ends with the answer, and no turn is requested: the stop holds (P13, R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
5 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"},"had_output":false}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
7 turn.stopped {"turn":"t1","actor":"person"}
-- owner --
dead
-- decide @100s --
8 session.orphaned {"reason":"owner-lost","incarnation":"17"}
8 tool.completed {"call":"c1","output":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"blue"}]},"synthetic":true}
-- state --
idle last=t1,failed,authentication prompt=p1,answered retry=,attempt=0,same=1,resumes=0
