Answers became messages, because their asker was gone. A new process adopts the turn and asks again: it is given an answer and
gives the receipt. That message has nothing more to say: it leaves the queue, and no turn takes it. An answer that the process
refuses stays in the queue, and its message brings it to the agent (P13, V10).

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
-- state queue pending --
queue: [{"message":"answer-2txg23qa7p5dtcpu2fa4","seq":5,"synthetic":true,"at":"@5s"},{"message":"answer-f7jdr3gbmweiqea2iadg","seq":6,"synthetic":true,"at":"@6s"}]
pending: {"turn":{"turn":"turn-6brocyppzz5cj7s2bleq","cause":"answer","of_turn":"t1","message":"answer-f7jdr3gbmweiqea2iadg","message_seq":6,"attempt":0,"prompt":"p2","prompts":[{"prompt":"p2","status":"answered","seq":6,"asked":3}],"at":"@6s","seq":6}}
-- facts --
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"t1","cause":"message"}
8 prompt.delivered {"prompt":"p1"}
9 prompt.delivered {"prompt":"p2","refused":"unknown request"}
-- state turn queue pending prompts --
turn: {"id":"t1","cause":"message","synthetic":false,"prompts":[{"prompt":"p1","status":"answered","seq":5,"asked":3,"had":2}],"since":"@2s","attempt":1,"epoch":2}
queue: [{"message":"answer-f7jdr3gbmweiqea2iadg","seq":6,"synthetic":true,"at":"@6s"}]
pending: (nothing)
prompts: (nothing)
-- endings --
5 prompt p1 answered delivered @8s
6 prompt p2 answered (refused: unknown request) delivered @9s
8 message answer-2txg23qa7p5dtcpu2fa4 delivered (answer-received)
