The end of a call closes its awaiting prompt as call-ended. If the harness ends the call, the settled prompt is
delivered. If a service ends a call under the turn of a living owner, the decision of a person stays owed (§2.1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
2 tool.started {"call":"c2","turn":"t1","name":"ask"}
2 tool.started {"call":"c3","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
3 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"question","delivery":"tool-result"}
3 prompt.requested {"prompt":"p3","turn":"t1","call":"c3","kind":"question","delivery":"tool-result"}
4 by=ledger prompt.answered {"prompt":"p2","answers":[],"by":"ada"}
4 by=ledger prompt.dismissed {"prompt":"p3","by":"ada"}
5 tool.completed {"call":"c1"}
6 by=reconciler tool.failed {"call":"c2","error":{"kind":"x","text":"y"},"synthetic":true}
7 by=reconciler tool.interrupted {"call":"c3","reason":"owner-lost","outcome":"unknown"}
-- feed --
1 session.opened s
2 turn.started t1
2 tool.started c1
2 tool.started c2
2 tool.started c3
3 prompt.requested p1
3 prompt.requested p2
3 prompt.requested p3
4 prompt.answered p2
4 prompt.dismissed p3
5 tool.completed c1
5 prompt.withdrawn p1 derived {"prompt":"p1","reason":"call-ended"}
6 tool.failed c2
7 tool.interrupted c3
-- endings --
4 prompt p2 answered
4 prompt p3 dismissed
5 tool c1 completed
5 prompt p1 withdrawn (call-ended)
6 tool c2 failed (y)
7 tool c3 interrupted (owner-lost)
-- facts --
8 tool.failed {"call":"c1","error":{"kind":"x","text":"y"}}
-- ignored --
8: 1, the last tool.failed by harness: closed-id
-- state prompts tools phase --
prompts: {"p2":{"kind":"question","call":"c2","tool":"ask","turn":"t1","since":"@3s","updated_at":"@4s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":4,"on_owner_loss":"keep","delivery":"tool-result","deadline":null},"p3":{"kind":"question","call":"c3","tool":"ask","turn":"t1","since":"@3s","updated_at":"@4s","status":"dismissed","epoch":1,"blocking":true,"seq":3,"settled_seq":4,"on_owner_loss":"keep","delivery":"tool-result","deadline":null}}
tools: (nothing)
phase: "running"
