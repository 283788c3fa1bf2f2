The owner died after an answer was in the log and before it closed the call: the stored answer becomes the call's
output, and one continuation is requested (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","options":{"model":"m"}}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
-- owner --
dead
-- decide @60s --
6 session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 tool.completed {"call":"ask","output":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"blue"}]},"synthetic":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","options":{"model":"m"},"prompt":"p1","prompts":["p1"]}
-- state --
queued turn=t1,message requested=turn-z3ao44pwarq65qsh3etl,answer,of=t1
