A process claims the session and adopts one call of the turn: its tool runs on. A question of the same turn, without a
call, is answered. No turn takes the place of the turn that the call belongs to (P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c2","turn":"t1","name":"build"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 session.claimed {"incarnation":"18"}
4 tool.started {"call":"c2","turn":"t1","name":"build"}
-- request @12s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
5 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
-- work --
(none)
-- facts --
21 tool.completed {"call":"c2","output":"built"}
-- endings tool --
21 tool c2 completed
-- state prompts turn pending --
prompts: {"p1":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@12s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":5,"on_owner_loss":"keep","delivery":"callback","deadline":null}}
turn: {"id":"t1","cause":"message","synthetic":false,"prompts":[{"prompt":"p1","status":"answered","seq":5,"asked":3}],"since":"@2s","attempt":1,"epoch":1}
pending: (nothing)
