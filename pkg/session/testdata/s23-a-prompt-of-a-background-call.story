A prompt of a call in the background adopts the call, and not the turn: the call outlives the turn, so the process does
not run it (§2.3, R7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"bg","turn":"t1","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"bg","kind":"question","delivery":"tool-result"}
4 session.claimed {"incarnation":"18"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"bg","kind":"question","delivery":"tool-result"}
-- state turn tools prompts phase --
turn: {"id":"t1","cause":"message","synthetic":false,"since":"@2s","attempt":1,"epoch":1}
tools: {"bg":{"name":"watch","turn":"t1","since":"@3s","epoch":2,"background":true}}
prompts: {"p1":{"kind":"question","call":"bg","tool":"watch","turn":"t1","since":"@3s","updated_at":"@4s","status":"awaiting","epoch":2,"blocking":true,"seq":4,"settled_seq":0,"on_owner_loss":"keep","delivery":"tool-result","deadline":null}}
phase: "waiting"
