A call in the background of a completed turn asks. The answer is stored while another turn runs, and the process dies
before it takes the answer. Recovery ends the call with it. The resume of the other turn names the decision (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t0","cause":"message","synthetic":true}
2 tool.started {"call":"c1","turn":"t0","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t0","call":"c1","kind":"question","delivery":"tool-result","blocking":false}
4 turn.completed {"turn":"t0"}
5 turn.started {"turn":"t1","cause":"message","synthetic":true}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- owner --
dead
-- decide @60s --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
7 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
interrupted last=t1,interrupted,owner-lost prompt=p1,answered
-- state prompts last_turn pending --
prompts: {"p1":{"kind":"question","call":"c1","tool":"watch","turn":"t0","since":"@3s","updated_at":"@6s","status":"answered","epoch":1,"blocking":false,"seq":3,"settled_seq":6,"on_owner_loss":"keep","delivery":"tool-result","deadline":null}}
last_turn: {"id":"t1","outcome":"interrupted","reason":"owner-lost","at":"@60s","cause":"message","attempt":1,"synthetic":true,"had_output":false,"seq":7}
pending: (nothing)
-- endings prompt --
6 prompt p1 answered
-- facts --
62 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":0,"due_at":"@61s"}
63 by=retry turn.requested {"turn":"t2","cause":"resume","of_turn":"t1","attempt":1,"prompts":["p1"]}
-- work turn --
turn: {"turn":"t2","cause":"resume","of_turn":"t1","attempt":1,"prompts":[{"prompt":"p1","seq":6,"status":"answered","by":"ada"}]}
-- facts --
64 session.claimed {"incarnation":"18"}
64 turn.started {"turn":"t2","prompts":["p1"]}
65 turn.completed {"turn":"t2"}
-- owner --
alive
-- decide @100s --
(none)
-- state --
idle owned-by=18 last=t2,completed
