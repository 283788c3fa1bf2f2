An open prompt that is requested again, and names a turn or a call that is over, stays open with what it has (P3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"ask","background":true}
4 tool.started {"call":"c2","turn":"t1","name":"ask","background":true}
5 prompt.requested {"prompt":"p1","call":"c2","kind":"question","delivery":"callback"}
6 tool.completed {"call":"c1"}
7 turn.completed {"turn":"t1"}
8 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"callback"}
-- ignored --
(none)
-- state prompts --
prompts: {"p1":{"kind":"permission","call":"c2","tool":"ask","since":"@5s","updated_at":"@8s","status":"awaiting","epoch":1,"blocking":true,"seq":8,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null}}
