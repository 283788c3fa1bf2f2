Owner gone, the answer is a message: the same commit queues it and requests the turn that takes it; the turn's start is its delivery (P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message","questions":[{"id":"q","question":"Which?"}]}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @5s --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"left"}],"by":"ada"}
-- result --
5 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"left"}],"by":"ada","owed":true}
5 message.accepted {"message":"answer-2txg23qa7p5dtcpu2fa4","content":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"left"}]},"synthetic":true}
5 turn.requested {"turn":"turn-hyh4ne5gxwnswizoobcy","cause":"answer","of_turn":"t1","message":"answer-2txg23qa7p5dtcpu2fa4","prompt":"p1","prompts":["p1"]}
-- work turn --
turn: {"turn":"turn-hyh4ne5gxwnswizoobcy","cause":"answer","of_turn":"t1","message":"answer-2txg23qa7p5dtcpu2fa4","content":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"left"}]},"synthetic":true,"attempt":1,"prompt":"p1","prompts":[{"prompt":"p1","seq":5,"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"status":"answered","answers":[{"question":"q","selected":[],"text":"left"}],"by":"ada"}]}
-- blocker p1 status delivered_at --
status: "answered"
delivered_at: (nothing)
-- state queue --
queue: [{"message":"answer-2txg23qa7p5dtcpu2fa4","seq":5,"synthetic":true,"at":"@5s"}]
-- facts --
6 session.claimed {"incarnation":"18"}
6 turn.started {"turn":"turn-hyh4ne5gxwnswizoobcy","cause":"answer","synthetic":true}
-- blocker p1 status delivered_at --
status: "answered"
delivered_at: (nothing)
-- state turn queue prompts pending --
turn: {"id":"turn-hyh4ne5gxwnswizoobcy","cause":"answer","synthetic":true,"of_turn":"t1","message":"answer-2txg23qa7p5dtcpu2fa4","message_seq":5,"prompts":[{"prompt":"p1","status":"answered","seq":5,"asked":3}],"since":"@6s","attempt":1,"epoch":2}
queue: (nothing)
prompts: {"p1":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@5s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":5,"on_owner_loss":"keep","delivery":"message","deadline":null}}
pending: (nothing)
-- endings --
5 prompt p1 answered
6 turn t1 continued
6 message answer-2txg23qa7p5dtcpu2fa4 delivered
