Which views a commit changes: those of prompts it touched, of all open ones when the owner changes, and the harness's when there is something else to do (§3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"callback"}
-- changed --
blockers [p1 p2], work false
-- facts --
4 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- changed --
blockers [], work false
-- facts --
5 by=ledger prompt.answered {"prompt":"p2","answers":[],"by":"ada"}
-- changed --
blockers [p2], work true
-- facts --
6 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- changed --
blockers [p1 p2], work true
-- facts --
7 session.claimed {"incarnation":"18"}
-- changed --
blockers [p1 p2], work false
-- facts --
8 prompt.delivered {"prompt":"p2"}
-- changed --
blockers [p2], work false
-- facts --
9 usage.reported {"turn":"","tokens":{"input":1}}
-- changed --
blockers [], work false
-- state prompts --
prompts: {"p1":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@3s","status":"awaiting","epoch":1,"blocking":true,"seq":3,"settled_seq":0,"on_owner_loss":"keep","delivery":"callback","deadline":null}}
