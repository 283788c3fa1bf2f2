A turn failed, and its retry is planned. Its process dies, and a person answers a question of its call in the background:
one turn continues the failed one, with its message, in place of the retry. The next process asks again and has the
answer. The requested turn stays: nothing else would try the message again (R15, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
4 prompt.requested {"prompt":"p2","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","on_owner_loss":"keep","blocking":false}
5 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"slow"}}
-- decide @6s --
6 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@7s","error":{"kind":"rate_limit","text":"slow"}}
-- facts --
7 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
8 by=ledger as=ada prompt.answered {"owed":true,"prompt":"p2","answers":[],"by":"ada"}
8 by=ledger as=ada tool.completed {"call":"c1","output":{},"synthetic":true}
8 by=ledger as=ada turn.requested {"turn":"t2","cause":"answer","of_turn":"t1","message":"m1","prompt":"p2","prompts":["p2"]}
9 session.claimed {"incarnation":"18"}
10 prompt.delivered {"prompt":"p2"}
-- state pending --
pending: {"turn":{"turn":"t2","cause":"answer","of_turn":"t1","message":"m1","attempt":0,"prompt":"p2","prompts":[{"prompt":"p2","status":"answered","seq":8,"asked":4,"had":2,"quiet":true}],"by":"ada","held":5,"at":"@8s","seq":8}}
-- decide @100s --
(none)
-- facts --
11 turn.started {"turn":"t2","cause":"answer","of_turn":"t1","message":"m1"}
12 turn.completed {"turn":"t2"}
-- state pending --
pending: (nothing)
