A prompt adopts its call and turn; one that names only its call finds its turn through it (§2.3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 prompt.requested {"prompt":"p1","call":"c1","kind":"permission","delivery":"callback"}
-- state prompts --
prompts: {"p1":{"kind":"permission","call":"c1","since":"@2s","updated_at":"@2s","status":"awaiting","epoch":1,"blocking":true,"seq":2,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null}}
-- facts --
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- state prompts --
prompts: {"p1":{"kind":"permission","call":"c1","tool":"bash","turn":"t1","since":"@2s","updated_at":"@2s","status":"awaiting","epoch":1,"blocking":true,"seq":2,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null}}
-- facts --
4 session.claimed {"incarnation":"18"}
5 prompt.requested {"prompt":"p1","turn":"t7","call":"c1","kind":"permission","delivery":"callback"}
-- state turn tools prompts phase --
turn: {"id":"t1","cause":"message","synthetic":false,"since":"@2s","attempt":1,"epoch":2}
tools: {"c1":{"name":"bash","turn":"t1","since":"@3s","epoch":2,"background":false}}
prompts: {"p1":{"kind":"permission","call":"c1","tool":"bash","turn":"t1","since":"@2s","updated_at":"@5s","status":"awaiting","epoch":2,"blocking":true,"seq":5,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null}}
phase: "waiting"
