The owner runs the turn in which an earlier process asked, and has not adopted the call that waits. A person's message
supersedes the question: the call ends, the message waits in the queue, and no other turn continues the owner's turn
(P14, P12).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 session.claimed {"incarnation":"18"}
4 turn.started {"turn":"t1","cause":"message"}
-- request --
send {"message":"m1","content":"never mind","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"never mind","synthetic":false,"by":"ada"}
5 tool.failed {"call":"c1","error":{"kind":"answered-in-chat","text":"answered in chat"},"synthetic":true}
-- state --
running owned-by=18 turn=t1,message queued=m1
-- facts --
6 turn.completed {"turn":"t1"}
-- decide --
7 turn.requested {"turn":"turn-t47qotpqb5tcrkygfemn","cause":"message","message":"m1"}
-- state --
queued owned-by=18 last=t1,completed queued=m1 requested=turn-t47qotpqb5tcrkygfemn,message,message=m1
