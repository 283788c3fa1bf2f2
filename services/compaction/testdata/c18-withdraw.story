Taken back before a turn has it: the next has its place. After that it is refused. Again is a success (C18).

-- facts --
1 session.opened {"incarnation":"17"}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
turn.requested {"turn":"turn-whvbmfh2pdd47osuipxj","cause":"message","message":"m1"}
-- wish --
send {"message":"m2","content":"and then","by":"ada"}
-- comes to --
message.accepted {"message":"m2","content":"and then","synthetic":false,"by":"ada"}
-- wish --
withdraw {"message":"m1","by":"ada"}
-- comes to --
message.withdrawn {"message":"m1","by":"ada"}
turn.requested {"turn":"turn-n7tnew66bcueaqreaszs","cause":"message","message":"m2"}
-- state --
seq=4 queued owned-by=17 queued=m2 pending=message,m2
-- wish --
withdraw {"message":"m1","by":"ben"}
-- comes to --
done at 4
-- facts --
5 turn.started {"turn":"$turn","cause":"message"}
-- wish --
withdraw {"message":"m2","by":"ada"}
-- comes to --
409 message m2 was handed out already: stop the turn instead
  {"status":"delivered","at":"2026-03-01T12:00:05Z","seq":5}
-- wish --
withdraw {"message":"m9","by":"ada"}
-- comes to --
404 no such message: m9
  {"what":"message"}
