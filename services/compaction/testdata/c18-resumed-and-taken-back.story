After a stop a person resumes the queue, and then withdraws the message that was about to be handed out: the next one
takes its place, as the person wanted (C18, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
3 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- request --
send {"message":"m2","content":"and then","by":"ada"}
-- result --
4 message.accepted {"message":"m2","content":"and then","synthetic":false,"by":"ada"}
-- facts --
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- decide --
(none)
-- facts --
7 by=retry as=ada turn.requested {"turn":"t2","cause":"message","message":"m1"}
-- request --
withdraw {"message":"m1","by":"ada"}
-- result --
8 message.withdrawn {"message":"m1","by":"ada"}
8 turn.requested {"turn":"turn-e3yr7hxprfg4ct7ufgbd","cause":"message","message":"m2"}
-- state --
queued owned-by=17 last=t1,stopped queued=m2 requested=turn-e3yr7hxprfg4ct7ufgbd,message,message=m2
