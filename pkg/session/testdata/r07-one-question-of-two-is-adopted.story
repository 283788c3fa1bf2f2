A process adopts one of two questions, and their turn with it. The other question is kept, and its answer is the turn's: it is in
the owner's view, and no continuation takes the turn from its owner (R7, P12). A call that was not adopted ends with its answer.

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c3","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"p3","turn":"t1","call":"c3","kind":"question","delivery":"tool-result"}
3 prompt.requested {"prompt":"p4","turn":"t1","kind":"question","delivery":"callback"}
4 session.claimed {"incarnation":"18"}
4 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
-- state turn prompts --
turn: {"id":"t1","cause":"message","synthetic":false,"since":"@2s","attempt":1,"epoch":2}
prompts: {"p1":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@4s","status":"awaiting","epoch":2,"blocking":true,"seq":4,"settled_seq":0,"on_owner_loss":"keep","delivery":"callback","deadline":null},"p2":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@3s","status":"awaiting","epoch":2,"blocking":true,"seq":3,"settled_seq":0,"on_owner_loss":"keep","delivery":"callback","deadline":null},"p3":{"kind":"question","call":"c3","tool":"ask","turn":"t1","since":"@3s","updated_at":"@3s","status":"awaiting","epoch":1,"blocking":true,"seq":3,"settled_seq":0,"on_owner_loss":"keep","delivery":"tool-result","deadline":null},"p4":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@3s","status":"awaiting","epoch":1,"blocking":true,"seq":3,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null}}
-- facts --
5 by=reconciler prompt.expired {"prompt":"p4","reason":"owner-lost"}
-- request @6s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
-- request @7s --
answer {"prompt":"p2","answers":[],"by":"ada"}
-- result --
7 prompt.answered {"prompt":"p2","answers":[],"by":"ada","owed":true}
-- work prompts --
prompts: {"p1":{"status":"answered","by":"ada"},"p2":{"status":"answered","by":"ada"}}
-- request @8s --
answer {"prompt":"p3","answers":[],"by":"ada"}
-- result --
8 prompt.answered {"prompt":"p3","answers":[],"by":"ada","owed":true}
8 tool.completed {"call":"c3","output":{"questions":[],"answers":[]},"synthetic":true}
-- work prompts turn --
prompts: {"p1":{"status":"answered","by":"ada"},"p2":{"status":"answered","by":"ada"}}
turn: (nothing)
-- state turn pending --
turn: {"id":"t1","cause":"message","synthetic":false,"prompts":[{"prompt":"p1","status":"answered","seq":6,"asked":4},{"prompt":"p2","status":"answered","seq":7,"asked":3},{"prompt":"p3","status":"answered","seq":8,"asked":3}],"since":"@2s","attempt":1,"epoch":2}
pending: (nothing)
