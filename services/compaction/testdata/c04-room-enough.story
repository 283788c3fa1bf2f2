Below the threshold the message is handed out in the commit that accepts it (C4).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":699}}
4 turn.completed {"turn":"t1"}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
turn.requested {"turn":"turn-urfx73yfbrfbvted7naj","cause":"message","message":"m1"}
-- state --
seq=5 queued owned-by=17 last=t1,completed queued=m1 pending=message,m1 used=699/1000 warn=true
