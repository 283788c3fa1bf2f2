A call in the background of a completed turn asks. The answer is stored while another turn runs. A person stops that
turn, and the process dies. Recovery ends the call, and the decision stays owed for the next turn (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t0","cause":"message","synthetic":true}
2 tool.started {"call":"c1","turn":"t0","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t0","call":"c1","kind":"question","delivery":"tool-result","blocking":false}
4 turn.completed {"turn":"t0"}
5 turn.started {"turn":"t1","cause":"message","synthetic":true}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
7 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- owner --
dead
-- decide @60s --
8 session.orphaned {"reason":"owner-lost","incarnation":"17"}
8 tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
8 turn.stopped {"turn":"t1","actor":"person"}
-- state prompts last_turn pending --
prompts: {"p1":{"kind":"question","call":"c1","tool":"watch","turn":"t0","since":"@3s","updated_at":"@6s","status":"answered","epoch":1,"blocking":false,"seq":3,"settled_seq":6,"on_owner_loss":"keep","delivery":"tool-result","deadline":null}}
last_turn: {"id":"t1","outcome":"stopped","at":"@60s","cause":"message","attempt":1,"synthetic":true,"had_output":false,"actor":"person","seq":8}
pending: (nothing)
-- endings prompt --
6 prompt p1 answered
-- facts --
61 by=ledger message.accepted {"message":"m1","content":"go on","by":"ada"}
61 by=ledger turn.requested {"turn":"t2","cause":"message","message":"m1","prompts":["p1"]}
-- work turn --
turn: {"turn":"t2","cause":"message","message":"m1","content":"go on","attempt":1,"prompts":[{"prompt":"p1","seq":6,"status":"answered","by":"ada"}]}
