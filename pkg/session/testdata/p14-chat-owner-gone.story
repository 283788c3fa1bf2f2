Owner gone: the message supersedes the question, the same commit closes its call and requests a turn with the message (P14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 by=compaction message.accepted {"message":"m1","content":"never mind","synthetic":false,"by":"ada"}
5 by=compaction tool.failed {"call":"c1","error":{"kind":"answered-in-chat","text":"answered in chat"},"synthetic":true}
5 by=compaction turn.requested {"turn":"t2","cause":"message","of_turn":"t1","message":"m1","prompt":"p1"}
-- work turn --
turn: {"turn":"t2","cause":"message","of_turn":"t1","message":"m1","content":"never mind","attempt":1,"prompt":"p1","prompts":[{"prompt":"p1","seq":5,"status":"superseded"}]}
-- pending --
(none)
-- state prompts tools phase --
prompts: (nothing)
tools: (nothing)
phase: "queued"
-- facts --
6 session.claimed {"incarnation":"18"}
6 turn.started {"turn":"t2","cause":"message","synthetic":false,"of_turn":"t1","message":"m1"}
-- state phase queue turn last_turn --
phase: "running"
queue: (nothing)
turn: {"id":"t2","cause":"message","synthetic":false,"of_turn":"t1","message":"m1","message_seq":5,"prompts":[{"prompt":"p1","status":"superseded","seq":5,"asked":3}],"since":"@6s","attempt":1,"epoch":2}
last_turn: {"id":"t1","outcome":"continued","at":"@6s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":6}
-- endings --
5 prompt p1 superseded (m1) delivered @5s
5 tool c1 failed (answered in chat)
6 turn t1 continued
6 message m1 delivered
