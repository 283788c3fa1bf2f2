The new incarnation re-requests a prompt whose callback it rebuilt: that one stays open under the new epoch, with its call and its turn; the rest keep the old epoch, for recovery (R7, §2.3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","options":{"model":"big"}}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
2 tool.started {"call":"c2","turn":"t1","name":"bash"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"callback"}
3 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"permission","delivery":"callback"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"c1","child":"s2"}]}
5 session.claimed {"incarnation":"18"}
5 prompt.requested {"prompt":"p1","kind":"permission","delivery":"callback"}
-- state epoch phase turn tools prompts waits_for --
epoch: 2
phase: "waiting"
turn: {"id":"t1","cause":"message","synthetic":false,"since":"@2s","attempt":1,"epoch":2,"options":{"model":"big"}}
tools: {"c1":{"name":"bash","turn":"t1","since":"@2s","epoch":2,"background":false},"c2":{"name":"bash","turn":"t1","since":"@2s","epoch":1,"background":false}}
prompts: {"p1":{"kind":"permission","call":"c1","tool":"bash","turn":"t1","since":"@3s","updated_at":"@5s","status":"awaiting","epoch":2,"blocking":true,"seq":5,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null},"p2":{"kind":"permission","call":"c2","tool":"bash","turn":"t1","since":"@3s","updated_at":"@3s","status":"awaiting","epoch":1,"blocking":true,"seq":3,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null}}
waits_for: (nothing)
-- facts --
6 tool.started {"call":"c2","turn":"t1","name":"bash"}
-- state tools --
tools: {"c1":{"name":"bash","turn":"t1","since":"@2s","epoch":2,"background":false},"c2":{"name":"bash","turn":"t1","since":"@2s","epoch":2,"background":false}}
