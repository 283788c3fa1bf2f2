A person's next message starts one more attempt at a compaction that holds the queue (C8).

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
send {"message":"m2","content":"again","by":"ada"}
-- result --
8 message.accepted {"message":"m2","content":"again","synthetic":false,"by":"ada"}
8 compaction.requested {"compaction":"compaction-fqinzd2wrtxxbgddo2yh","reason":"on-send","used":1200,"limit":1000,"follow_up":"message","message":"m1"}
-- state --
compacting owned-by=17 last=t1,completed queued=m1 queued=m2 compaction=requested,on-send compacted=failed,failures=1 used=1200/1000 warn
-- facts --
9 compaction.started {"compaction":"$compaction"}
10 compaction.failed {"compaction":"$compaction","error":{"kind":"quota","text":"x"}}
-- decide --
(none)
-- state --
queued owned-by=17 last=t1,completed queued=m1 queued=m2 compaction=held,on-send,quota compacted=failed,failures=2 used=1200/1000 warn
