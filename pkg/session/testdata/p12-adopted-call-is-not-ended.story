A process claims the session and adopts the turn and its call, but not the question of the call, which still waits. A
person answers it. The call is not ended for the process: its work view has the answer (P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"deploy"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 session.claimed {"incarnation":"18"}
4 turn.started {"turn":"t1","cause":"message"}
4 tool.started {"call":"c1","turn":"t1","name":"deploy"}
-- request @12s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
5 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
-- work --
harness: "h"
session: "s"
epoch: 2
owned: true
seq: 5
prompts: {"p1":{"status":"answered","by":"ada"}}
-- facts --
20 prompt.delivered {"prompt":"p1"}
20 tool.completed {"call":"c1","output":"deployed"}
21 turn.completed {"turn":"t1"}
-- endings --
5 prompt p1 answered delivered @20s
20 tool c1 completed
21 turn t1 completed
-- state prompts last_turn pending --
prompts: (nothing)
last_turn: {"id":"t1","outcome":"completed","at":"@21s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":21}
pending: (nothing)
