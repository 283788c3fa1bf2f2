An answer to a question without a call is named by every attempt of the turn that carries it: the retry of a failed one and
the resume of an interrupted one. It counts as delivered when an attempt completes, not when one starts (P13, T13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=harness message.accepted {"message":"m1","content":"deploy","by":"ada"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?","custom":true}]}
3 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"When?","custom":true}]}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @5s --
answer {"prompt":"p2","answers":[{"question":"q","selected":[],"text":"now"}],"by":"ada"}
-- result --
5 prompt.answered {"prompt":"p2","answers":[{"question":"q","selected":[],"text":"now"}],"by":"ada","owed":true}
-- request @6s --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"staging"}],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"staging"}],"by":"ada","owed":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","message":"m1","options":{"model":"big"},"prompt":"p1","prompts":["p2","p1"]}
-- facts --
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"t2","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p2","p1"]}
8 turn.failed {"turn":"t2","error":{"kind":"rate_limit","text":"later"},"had_output":false}
-- state last_turn prompts --
last_turn: {"id":"t2","outcome":"failed","reason":"rate_limit","at":"@8s","error":{"kind":"rate_limit","text":"later"},"prompts":[{"prompt":"p2","status":"answered","seq":5,"asked":3},{"prompt":"p1","status":"answered","seq":6,"asked":3}],"cause":"answer","of_turn":"t1","attempt":1,"synthetic":false,"had_output":false,"seq":8}
prompts: {"p1":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@6s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":6,"on_owner_loss":"keep","delivery":"tool-result","deadline":null},"p2":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@5s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":5,"on_owner_loss":"keep","delivery":"tool-result","deadline":null}}
-- facts --
9 by=retry turn.requested {"turn":"t3","cause":"retry","of_turn":"t2","attempt":1}
-- work turn --
turn: {"turn":"t3","cause":"retry","of_turn":"t2","attempt":1,"prompts":[{"prompt":"p2","seq":5,"questions":[{"id":"q","question":"When?","options":[],"multi":false,"custom":true}],"status":"answered","answers":[{"question":"q","selected":[],"text":"now"}],"by":"ada"},{"prompt":"p1","seq":6,"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":true}],"status":"answered","answers":[{"question":"q","selected":[],"text":"staging"}],"by":"ada"}]}
-- facts --
10 turn.started {"turn":"t3","cause":"retry","of_turn":"t2"}
11 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"18"}
11 by=reconciler turn.interrupted {"turn":"t3","reason":"owner-lost"}
12 by=retry turn.requested {"turn":"t4","cause":"resume","of_turn":"t3","attempt":2}
-- pending --
(none)
-- state pending --
pending: {"turn":{"turn":"t4","cause":"resume","of_turn":"t3","attempt":2,"prompts":[{"prompt":"p2","status":"answered","seq":5,"asked":3},{"prompt":"p1","status":"answered","seq":6,"asked":3}],"at":"@12s","seq":12}}
-- facts --
13 session.claimed {"incarnation":"19"}
13 turn.started {"turn":"t4","cause":"resume","of_turn":"t3"}
14 turn.completed {"turn":"t4"}
-- state turn last_turn prompts --
turn: (nothing)
last_turn: {"id":"t4","outcome":"completed","at":"@14s","cause":"resume","of_turn":"t3","attempt":2,"synthetic":false,"had_output":false,"seq":14}
prompts: (nothing)
-- endings prompt --
5 prompt p2 answered delivered @14s
6 prompt p1 answered delivered @14s
