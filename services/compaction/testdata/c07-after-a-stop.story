After a stop the queue waits for a person; a synthetic message does not count as one (C7, C15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
3 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- facts --
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 turn.stopped {"turn":"t1","actor":"person"}
-- decide --
(none)
-- request --
send {"message":"m2","content":"a note","synthetic":true,"by":"bot"}
-- result --
6 message.accepted {"message":"m2","content":"a note","synthetic":true,"by":"bot"}
-- state --
queued owned-by=17 last=t1,stopped queued=m1 queued=m2
-- request --
send {"message":"m3","content":"go on","by":"ada"}
-- result --
7 message.accepted {"message":"m3","content":"go on","synthetic":false,"by":"ada"}
7 turn.requested {"turn":"turn-t47qotpqb5tcrkygfemn","cause":"message","message":"m1"}
-- state --
queued owned-by=17 last=t1,stopped queued=m1 queued=m2 queued=m3 requested=turn-t47qotpqb5tcrkygfemn,message,message=m1
