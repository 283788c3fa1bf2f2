The pending list is a fold of the log: the list, the view, the document and a fold of one's own agree at every commit (P1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
4 prompt.requested {"prompt":"p2","turn":"t1","kind":"permission","delivery":"callback"}
5 prompt.requested {"prompt":"p3","turn":"t1","kind":"note","delivery":"message","blocking":false}
-- pending --
p1
p2
p3
-- state phase --
phase: "waiting"
-- facts --
6 by=ledger prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":["x"]}],"by":"ada"}
-- pending --
p2
p3
-- facts --
7 tool.completed {"call":"c1"}
8 prompt.withdrawn {"prompt":"p2","reason":"shutdown"}
-- pending --
p3
-- state phase prompts --
phase: "running"
prompts: {"p3":{"kind":"note","turn":"t1","since":"@5s","updated_at":"@5s","status":"awaiting","epoch":1,"blocking":false,"seq":5,"settled_seq":0,"on_owner_loss":"keep","delivery":"message","deadline":null}}
-- facts --
9 turn.completed {"turn":"t1"}
-- pending --
(none)
-- state phase prompts --
phase: "idle"
prompts: (nothing)
-- endings --
6 prompt p1 answered delivered @7s
7 tool c1 completed
8 prompt p2 withdrawn (shutdown)
9 prompt p3 withdrawn (turn-ended)
9 turn t1 completed
-- keys --
session.h.s
blocker.h.s.s.p1
blocker.h.s.s.p2
blocker.h.s.s.p3
