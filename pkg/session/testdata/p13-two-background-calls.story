Two calls in the background, whose turn has completed, ask one question each. The process dies, and a person answers
both. The ledger ends both calls. The turn that is requested names both decisions, and its completion delivers them
(P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
2 tool.started {"call":"c2","turn":"t1","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
3 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"question","delivery":"tool-result"}
4 turn.completed {"turn":"t1"}
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @12s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
6 tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
-- request @13s --
answer {"prompt":"p2","answers":[],"by":"ada"}
-- result --
7 prompt.answered {"prompt":"p2","answers":[],"by":"ada","owed":true}
7 tool.completed {"call":"c2","output":{"questions":[],"answers":[]},"synthetic":true}
7 turn.requested {"turn":"turn-jaidas4co3pgl6vwzlbw","cause":"answer","of_turn":"t1","prompt":"p2","prompts":["p1","p2"]}
-- work turn --
turn: {"turn":"turn-jaidas4co3pgl6vwzlbw","cause":"answer","of_turn":"t1","attempt":1,"prompt":"p2","prompts":[{"prompt":"p1","seq":6,"status":"answered","by":"ada"},{"prompt":"p2","seq":7,"status":"answered","by":"ada"}]}
-- facts --
20 session.claimed {"incarnation":"18"}
20 turn.started {"turn":"$requested","prompts":["p1","p2"]}
21 turn.completed {"turn":"$turn"}
-- state prompts last_turn pending --
prompts: (nothing)
last_turn: {"id":"turn-jaidas4co3pgl6vwzlbw","outcome":"completed","at":"@21s","cause":"answer","of_turn":"t1","attempt":1,"synthetic":false,"had_output":false,"seq":21}
pending: (nothing)
-- endings prompt --
6 prompt p1 answered delivered @21s
7 prompt p2 answered delivered @21s
