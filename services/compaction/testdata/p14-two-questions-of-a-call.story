The asker of two questions in one call is gone. A person's message supersedes both: their call is closed once, and one
turn is requested with the message (P14).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
3 prompt.requested {"prompt":"p2","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
5 tool.failed {"call":"c1","error":{"kind":"answered-in-chat","text":"answered in chat"},"synthetic":true}
5 turn.requested {"turn":"turn-hyh4ne5gxwnswizoobcy","cause":"message","of_turn":"t1","message":"m1","prompt":"p1","prompts":["p1","p2"]}
-- state --
queued turn=t1,message queued=m1 requested=turn-hyh4ne5gxwnswizoobcy,message,of=t1,message=m1
