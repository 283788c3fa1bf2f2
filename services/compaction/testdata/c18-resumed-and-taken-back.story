After a stop a person has the queue go on, and then takes back the message that was about to be handed out: the next has its place, for that was what the person wanted (C18, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- wish --
send {"message":"m2","content":"and then","by":"ada"}
-- comes to --
message.accepted {"message":"m2","content":"and then","synthetic":false,"by":"ada"}
-- facts --
5/ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- decide --
nothing
-- facts --
7/retry=ada turn.requested {"turn":"t2","cause":"message","message":"m1"}
-- wish --
withdraw {"message":"m1","by":"ada"}
-- comes to --
message.withdrawn {"message":"m1","by":"ada"}
turn.requested {"turn":"turn-e3yr7hxprfg4ct7ufgbd","cause":"message","message":"m2"}
-- state --
seq=8 queued owned-by=17 last=t1,stopped queued=m2 pending=message,m2
