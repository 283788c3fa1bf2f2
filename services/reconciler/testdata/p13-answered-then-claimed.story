A prompt was answered, its asker died, and a new incarnation claimed the session before recovery. The answer belongs to
the old epoch, so it is not in the new owner's view as its own prompt. When the new owner is ready, and not before,
recovery writes the answer as the call's output and requests the continuation, which the new owner takes like any other
(P13, rule 3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
6 session.claimed {"incarnation":"18"}
-- owner --
starting @20s
-- decide @10s --
look @20s
-- owner --
alive
-- decide --
7 tool.completed {"call":"ask","output":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"blue"}]},"synthetic":true}
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=18 turn=t1,message requested=turn-shfzy35gxxwiyxqjd2da,answer,of=t1
