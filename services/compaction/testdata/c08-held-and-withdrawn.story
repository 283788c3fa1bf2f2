A held message can be withdrawn; the next message gets its turn (C8, C18).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":1200}}
4 turn.completed {"turn":"t1"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
5 compaction.requested {"compaction":"compaction-f5itfyrli7px626f7uqs","reason":"on-send","used":1200,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
6 compaction.started {"compaction":"$compaction"}
7 compaction.failed {"compaction":"$compaction","error":{"kind":"quota","text":"x"}}
-- request --
send {"message":"n1","content":"a note","synthetic":true,"by":"bot"}
-- result --
8 message.accepted {"message":"n1","content":"a note","synthetic":true,"by":"bot"}
-- request --
withdraw {"message":"m1","by":"ada"}
-- result --
9 message.withdrawn {"message":"m1","by":"ada"}
9 compaction.requested {"compaction":"compaction-dzmc2wozauyo5ognoiet","reason":"on-send","used":1200,"limit":1000,"follow_up":"message","message":"n1"}
-- state --
compacting owned-by=17 last=t1,completed queued=n1 compaction=requested,on-send compacted=failed,failures=1 used=1200/1000 warn
