A person's message while a question waits and the asker lives: the question is superseded, the message stays in the
queue (P14).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
4 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- state --
running owned-by=17 turn=t1,message call=c1 prompt=p1,superseded queued=m1
-- facts --
5 tool.failed {"call":"c1","error":{"kind":"answered-in-chat","text":"x"}}
-- decide --
(none)
-- facts --
6 turn.completed {"turn":"t1"}
-- decide --
7 turn.requested {"turn":"turn-t47qotpqb5tcrkygfemn","cause":"message","message":"m1"}
