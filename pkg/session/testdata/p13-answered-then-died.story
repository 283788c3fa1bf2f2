The owner died after an answer reached the log and before it closed the call: recovery writes the stored answer as the call's output and requests the continuation (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
-- request @4s --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"left"}],"by":"ada"}
-- result --
4 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"left"}],"by":"ada","owed":true}
-- facts --
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- state phase prompts --
phase: "interrupted"
prompts: {"p1":{"kind":"question","call":"c1","tool":"ask","turn":"t1","since":"@3s","updated_at":"@4s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":4,"on_owner_loss":"keep","delivery":"tool-result","deadline":null}}
-- request @6s --
settle {"prompt":"p1"}
-- result --
6 tool.completed {"call":"c1","output":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"left"}]},"synthetic":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state phase prompts tools --
phase: "queued"
prompts: (nothing)
tools: (nothing)
-- endings --
4 prompt p1 answered delivered @6s
6 tool c1 completed
