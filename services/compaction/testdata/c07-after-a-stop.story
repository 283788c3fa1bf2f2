After a stop the queue waits for a person; a synthetic message is none (C7, C15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- facts --
4/ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 turn.stopped {"turn":"t1","actor":"person"}
-- decide --
nothing
-- wish --
send {"message":"m2","content":"a note","synthetic":true,"by":"bot"}
-- comes to --
message.accepted {"message":"m2","content":"a note","synthetic":true,"by":"bot"}
-- state --
seq=6 queued owned-by=17 last=t1,stopped queued=m1 queued=m2
-- wish --
send {"message":"m3","content":"go on","by":"ada"}
-- comes to --
message.accepted {"message":"m3","content":"go on","synthetic":false,"by":"ada"}
turn.requested {"turn":"turn-t47qotpqb5tcrkygfemn","cause":"message","message":"m1"}
-- state --
seq=7 queued owned-by=17 last=t1,stopped queued=m1 queued=m2 queued=m3 pending=message,m1
