Containment delivers nothing: an answered prompt closed in by the end of its turn stays undelivered, and travels on the next turn that is requested for it (§2.1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 by=ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
5 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- endings --
4 prompt p1 answered
5 tool c1 ended-with-turn (turn-ended)
5 turn t1 failed (server_error)
-- work prompts --
prompts: {"p1":{"status":"answered","by":"ada"}}
-- blocker p1 status delivered_at --
status: "answered"
delivered_at: (nothing)
-- facts --
6 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 session.claimed {"incarnation":"18"}
8 turn.started {"turn":"t2","cause":"message","synthetic":true}
-- work --
(none)
-- state prompts --
prompts: {"p1":{"kind":"question","call":"c1","tool":"ask","turn":"t1","since":"@3s","updated_at":"@4s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":4,"on_owner_loss":"keep","delivery":"tool-result","deadline":null}}
-- facts --
9 turn.completed {"turn":"t2"}
-- request @10s --
settle {"prompt":"p1"}
-- result --
10 turn.requested {"turn":"turn-elyewxxddhammezloqgr","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- work turn --
turn: {"turn":"turn-elyewxxddhammezloqgr","cause":"answer","of_turn":"t1","attempt":1,"prompt":"p1","prompts":[{"prompt":"p1","seq":4,"status":"answered","by":"ada"}]}
-- facts --
12 turn.started {"turn":"$requested","cause":"answer","synthetic":true}
-- state prompts --
prompts: {"p1":{"kind":"question","call":"c1","tool":"ask","turn":"t1","since":"@3s","updated_at":"@4s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":4,"on_owner_loss":"keep","delivery":"tool-result","deadline":null}}
-- endings --
4 prompt p1 answered
5 tool c1 ended-with-turn (turn-ended)
5 turn t1 failed (server_error)
9 turn t2 completed
