A request names a prompt whose answer waits in the queue as a message, and does not take the message, as an older
reconciler did. The turn does not bring the answer. The message brings it (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message","on_owner_loss":"keep"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 by=ledger message.accepted {"message":"answer-2txg23qa7p5dtcpu2fa4","content":"x","synthetic":true}
6 by=reconciler turn.requested {"turn":"r1","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state pending --
pending: {"turn":{"turn":"r1","cause":"answer","of_turn":"t1","attempt":0,"prompt":"p1","at":"@6s","seq":6}}
-- work turn --
turn: {"turn":"r1","cause":"answer","of_turn":"t1","attempt":1}
-- facts --
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"r1","prompts":["p1"]}
8 turn.completed {"turn":"r1"}
-- state queue prompts --
queue: [{"message":"answer-2txg23qa7p5dtcpu2fa4","seq":5,"synthetic":true,"at":"@5s"}]
prompts: {"p1":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@5s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":5,"on_owner_loss":"keep","delivery":"message","deadline":null}}
-- facts --
9 by=compaction turn.requested {"turn":"r2","cause":"message","message":"answer-2txg23qa7p5dtcpu2fa4"}
10 turn.started {"turn":"r2"}
-- state turn prompts --
turn: {"id":"r2","cause":"message","synthetic":true,"message":"answer-2txg23qa7p5dtcpu2fa4","message_seq":5,"prompts":[{"prompt":"p1","status":"answered","seq":5,"asked":3}],"since":"@10s","attempt":1,"epoch":2}
prompts: {"p1":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@5s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":5,"on_owner_loss":"keep","delivery":"message","deadline":null}}
