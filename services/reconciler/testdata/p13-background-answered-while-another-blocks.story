A call in the background asks, and another question blocks. The first is answered, and the process dies. Recovery ends the
call, and the decision stays owed. When the other question is answered, a turn is requested that names both (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t0","cause":"message","synthetic":true}
2 tool.started {"call":"c1","turn":"t0","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t0","call":"c1","kind":"question","delivery":"tool-result"}
3 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 turn.completed {"turn":"t0"}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- owner --
dead
-- decide @60s --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
-- state prompts last_turn pending --
prompts: {"p1":{"kind":"question","call":"c1","tool":"watch","turn":"t0","since":"@3s","updated_at":"@6s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":6,"on_owner_loss":"keep","delivery":"tool-result","deadline":null},"p2":{"kind":"question","since":"@3s","updated_at":"@3s","status":"awaiting","epoch":1,"blocking":true,"seq":3,"settled_seq":0,"on_owner_loss":"keep","delivery":"callback","deadline":null}}
last_turn: {"id":"t0","outcome":"completed","at":"@4s","cause":"message","attempt":1,"synthetic":true,"had_output":false,"seq":4}
pending: (nothing)
-- endings prompt --
6 prompt p1 answered
-- facts --
61 by=ledger prompt.answered {"owed":true,"prompt":"p2","answers":[],"by":"ada"}
-- decide @70s --
62 turn.requested {"turn":"turn-f3xjjvjd5hiorkzvm52u","cause":"answer","prompt":"p2","prompts":["p1","p2"]}
