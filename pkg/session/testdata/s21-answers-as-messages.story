Each answer that became a message is delivered by the turn that takes that message, whatever prompt the turn names (§2.1, P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message"}
3 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"message"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- wish --
answer {"prompt":"p1","answers":[],"by":"ada"}
answer {"prompt":"p2","answers":[],"by":"ada"}
-- facts appended --
5 prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
5 message.accepted {"message":"answer-tlimvrwgwljuj3yhhyfz","content":{"questions":[],"answers":[]},"synthetic":true}
6 prompt.answered {"prompt":"p2","answers":[],"by":"ada"}
6 message.accepted {"message":"answer-cxsf3cgmrmynzhxhqpfg","content":{"questions":[],"answers":[]},"synthetic":true}
6 turn.requested {"turn":"turn-sv7gcdmprwnexw3dykwf","cause":"answer","of_turn":"t1","message":"answer-cxsf3cgmrmynzhxhqpfg","prompt":"p2","prompts":["p2"]}
-- facts --
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"turn-sv7gcdmprwnexw3dykwf","cause":"answer","synthetic":true}
-- state queue --
queue: [{"message":"answer-tlimvrwgwljuj3yhhyfz","seq":5,"synthetic":true,"at":@5s}]
-- endings --
5 prompt p1 answered
6 prompt p2 answered
7 turn t1 continued
7 message answer-cxsf3cgmrmynzhxhqpfg delivered
-- facts --
8 turn.started {"turn":"t3","cause":"message","synthetic":true,"message":"answer-tlimvrwgwljuj3yhhyfz"}
-- state queue prompts --
queue: (nothing)
prompts: {"p1":{"kind":"question","turn":"t1","since":@3s,"updated_at":@5s,"status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":5,"on_owner_loss":"keep","delivery":"message","deadline":null},"p2":{"kind":"question","turn":"t1","since":@3s,"updated_at":@6s,"status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":6,"on_owner_loss":"keep","delivery":"message","deadline":null}}
-- endings prompt --
5 prompt p1 answered
6 prompt p2 answered
