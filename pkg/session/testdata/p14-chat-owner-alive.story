A person's message while a kept question is open supersedes it. The owner sees that in its work, closes the call and
continues; the message waits its turn (P14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p2","turn":"t1","kind":"permission","delivery":"callback"}
5 by=compaction message.accepted {"message":"m0","content":"a note","synthetic":true}
-- pending --
p1
p2
-- facts --
6 by=compaction message.accepted {"message":"m1","content":"never mind","synthetic":false,"by":"ada"}
-- pending --
p2
-- work prompts --
prompts: {"p1":{"status":"superseded","reason":"m1"}}
-- state phase queue turn --
phase: "waiting"
queue: [{"message":"m0","seq":5,"synthetic":true,"at":"@5s"},{"message":"m1","seq":6,"synthetic":false,"at":"@6s"}]
turn: {"id":"t1","cause":"message","synthetic":false,"prompts":[{"prompt":"p1","status":"superseded","seq":6,"asked":3}],"since":"@2s","attempt":1,"epoch":1}
-- feed --
1 session.opened s
2 turn.started t1
2 tool.started c1
3 prompt.requested p1
4 prompt.requested p2
5 message.accepted m0
6 message.accepted m1
6 prompt.superseded p1 derived {"prompt":"p1","message":"m1"}
-- facts --
7 tool.failed {"call":"c1","error":{"kind":"answered-in-chat","text":"answered in chat"}}
-- work prompts --
(none)
-- state queue --
queue: [{"message":"m0","seq":5,"synthetic":true,"at":"@5s"},{"message":"m1","seq":6,"synthetic":false,"at":"@6s"}]
-- endings --
6 prompt p1 superseded (m1) delivered @7s
7 tool c1 failed (answered in chat)
