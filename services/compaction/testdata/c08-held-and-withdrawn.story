What is held can be taken back; the next message has its turn (C8, C18).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":1200}}
4 turn.completed {"turn":"t1"}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
compaction.requested {"compaction":"compaction-f5itfyrli7px626f7uqs","reason":"on-send","used":1200,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
6 compaction.started {"compaction":"$compaction"}
7 compaction.failed {"compaction":"$compaction","error":{"kind":"quota","text":"x"}}
-- wish --
send {"message":"n1","content":"a note","synthetic":true,"by":"bot"}
-- comes to --
message.accepted {"message":"n1","content":"a note","synthetic":true,"by":"bot"}
-- wish --
withdraw {"message":"m1","by":"ada"}
-- comes to --
message.withdrawn {"message":"m1","by":"ada"}
compaction.requested {"compaction":"compaction-dzmc2wozauyo5ognoiet","reason":"on-send","used":1200,"limit":1000,"follow_up":"message","message":"n1"}
-- state --
seq=9 compacting owned-by=17 last=t1,completed queued=n1 compaction=requested,on-send compacted=failed,1 used=1200/1000 warn=true
