Below the threshold the message is handed out in the commit that accepts it (C4).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":699}}
4 turn.completed {"turn":"t1"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
5 turn.requested {"turn":"turn-urfx73yfbrfbvted7naj","cause":"message","message":"m1"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-urfx73yfbrfbvted7naj,message,message=m1 used=699/1000 warn
