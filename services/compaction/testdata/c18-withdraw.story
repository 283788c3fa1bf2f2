A message is withdrawn before a turn has taken it: the next one takes its place. Later a withdrawal is refused.
Withdrawing again is a success (C18).

-- facts --
1 session.opened {"incarnation":"17"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
2 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
2 turn.requested {"turn":"turn-whvbmfh2pdd47osuipxj","cause":"message","message":"m1"}
-- request --
send {"message":"m2","content":"and then","by":"ada"}
-- result --
3 message.accepted {"message":"m2","content":"and then","synthetic":false,"by":"ada"}
-- request --
withdraw {"message":"m1","by":"ada"}
-- result --
4 message.withdrawn {"message":"m1","by":"ada"}
4 turn.requested {"turn":"turn-n7tnew66bcueaqreaszs","cause":"message","message":"m2"}
-- state --
queued owned-by=17 queued=m2 requested=turn-n7tnew66bcueaqreaszs,message,message=m2
-- request --
withdraw {"message":"m1","by":"ben"}
-- result --
nothing to append, see 4
-- facts --
5 turn.started {"turn":"$requested","cause":"message"}
-- request --
withdraw {"message":"m2","by":"ada"}
-- result --
409 message m2 was handed out already: stop the turn instead
  {"status":"delivered","at":"@5s","seq":5}
-- request --
withdraw {"message":"m9","by":"ada"}
-- result --
404 no such message: m9
  {"what":"message"}
