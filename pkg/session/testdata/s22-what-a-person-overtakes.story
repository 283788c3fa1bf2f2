A person's turn overtakes decisions for a process or a turn that is gone; decisions for an open prompt, an open call or
the present process stay (§2.2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m-t1"}
2 tool.started {"call":"c1","turn":"t1","name":"serve","background":true}
2 tool.started {"call":"c2","turn":"t1","name":"bash"}
3 prompt.requested {"prompt":"awaiting","kind":"permission","delivery":"callback"}
3 prompt.requested {"prompt":"open-call","turn":"t1","call":"c1","kind":"permission","delivery":"callback"}
3 prompt.requested {"prompt":"closed-call","turn":"t1","call":"c2","kind":"permission","delivery":"callback"}
3 prompt.requested {"prompt":"no-turn","kind":"permission","delivery":"callback"}
4 by=ledger prompt.answered {"prompt":"open-call","answers":[],"by":"ada"}
4 by=ledger prompt.answered {"prompt":"closed-call","answers":[],"by":"ada"}
4 by=ledger prompt.answered {"prompt":"no-turn","answers":[],"by":"ada"}
5 turn.completed {"turn":"t1"}
-- work prompts --
prompts: {"closed-call":{"status":"answered","by":"ada"},"no-turn":{"status":"answered","by":"ada"},"open-call":{"status":"answered","by":"ada"}}
-- facts --
6 turn.started {"turn":"t2","cause":"message","synthetic":true}
-- work prompts --
prompts: {"closed-call":{"status":"answered","by":"ada"},"no-turn":{"status":"answered","by":"ada"},"open-call":{"status":"answered","by":"ada"}}
-- facts --
7 turn.started {"turn":"t3","cause":"message","message":"m-t3"}
-- work prompts --
prompts: {"no-turn":{"status":"answered","by":"ada"},"open-call":{"status":"answered","by":"ada"}}
-- pending --
awaiting
-- facts --
8 session.claimed {"incarnation":"18"}
9 turn.started {"turn":"t4","cause":"message","message":"m-t4"}
-- pending --
awaiting
-- state prompts --
prompts: {"awaiting":{"kind":"permission","since":"@3s","updated_at":"@3s","status":"awaiting","epoch":1,"blocking":true,"seq":3,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null},"open-call":{"kind":"permission","call":"c1","tool":"serve","turn":"t1","since":"@3s","updated_at":"@4s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":4,"on_owner_loss":"expire","delivery":"callback","deadline":null}}
