Each answer that became a message is delivered by the turn that takes that message, whatever prompt the turn names (§2.1, P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message"}
3 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"message"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @5s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
5 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
5 message.accepted {"message":"answer-2txg23qa7p5dtcpu2fa4","content":{"questions":[],"answers":[]},"synthetic":true}
-- request @6s --
answer {"prompt":"p2","answers":[],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p2","answers":[],"by":"ada","owed":true}
6 message.accepted {"message":"answer-f7jdr3gbmweiqea2iadg","content":{"questions":[],"answers":[]},"synthetic":true}
6 turn.requested {"turn":"turn-6brocyppzz5cj7s2bleq","cause":"answer","of_turn":"t1","message":"answer-f7jdr3gbmweiqea2iadg","prompt":"p2","prompts":["p2"]}
-- facts --
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"turn-6brocyppzz5cj7s2bleq","cause":"answer","synthetic":true}
-- state queue --
queue: [{"message":"answer-2txg23qa7p5dtcpu2fa4","seq":5,"synthetic":true,"at":"@5s"}]
-- endings --
5 prompt p1 answered
6 prompt p2 answered
7 turn t1 continued
7 message answer-f7jdr3gbmweiqea2iadg delivered
-- facts --
8 turn.started {"turn":"t3","cause":"message","synthetic":true,"message":"answer-2txg23qa7p5dtcpu2fa4"}
-- state queue prompts --
queue: (nothing)
prompts: {"p1":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@5s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":5,"on_owner_loss":"keep","delivery":"message","deadline":null},"p2":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@6s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":6,"on_owner_loss":"keep","delivery":"message","deadline":null}}
-- endings prompt --
5 prompt p1 answered
6 prompt p2 answered
