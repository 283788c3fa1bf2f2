Two calls in the background ask one question each that does not block. The process dies, and a person answers both. The
second request replaces the first one, and names both decisions (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
2 tool.started {"call":"c2","turn":"t1","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","blocking":false}
3 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"question","delivery":"tool-result","blocking":false}
4 turn.completed {"turn":"t1"}
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @12s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
6 tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- request @13s --
answer {"prompt":"p2","answers":[],"by":"ada"}
-- result --
7 prompt.answered {"prompt":"p2","answers":[],"by":"ada","owed":true}
7 tool.completed {"call":"c2","output":{"questions":[],"answers":[]},"synthetic":true}
7 turn.requested {"turn":"turn-jaidas4co3pgl6vwzlbw","cause":"answer","of_turn":"t1","prompt":"p2","prompts":["p1","p2"]}
-- work turn --
turn: {"turn":"turn-jaidas4co3pgl6vwzlbw","cause":"answer","of_turn":"t1","attempt":1,"prompt":"p2","prompts":[{"prompt":"p1","seq":6,"status":"answered","by":"ada"},{"prompt":"p2","seq":7,"status":"answered","by":"ada"}]}
-- endings prompt --
6 prompt p1 answered
7 prompt p2 answered
