The asker is gone: the same commit closes the calls and requests a turn with the message; a permission with a callback
still blocks until recovery has closed it (P14).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
3 tool.started {"call":"c2","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"question","delivery":"tool-result"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request --
send {"message":"m0","content":"a note","synthetic":true,"by":"bot"}
-- result --
5 message.accepted {"message":"m0","content":"a note","synthetic":true,"by":"bot"}
-- state --
waiting turn=t1,message call=c1 call=c2 prompt=p1,awaiting prompt=p2,awaiting queued=m0
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
6 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
6 tool.failed {"call":"c1","error":{"kind":"answered-in-chat","text":"answered in chat"},"synthetic":true}
6 tool.failed {"call":"c2","error":{"kind":"answered-in-chat","text":"answered in chat"},"synthetic":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"message","of_turn":"t1","message":"m1","prompt":"p1","prompts":["p1","p2"]}
-- state --
queued turn=t1,message queued=m0 queued=m1 requested=turn-z3ao44pwarq65qsh3etl,message,of=t1,message=m1
-- facts --
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"$requested","cause":"message"}
-- decide --
(none)
-- state --
running owned-by=18 turn=turn-z3ao44pwarq65qsh3etl,message last=t1,continued queued=m0
