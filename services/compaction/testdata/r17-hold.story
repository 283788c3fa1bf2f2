The same with policy hold: nothing runs until the person sends a message (R17).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"resume":"hold"}}
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
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 by=reconciler compaction.failed {"compaction":"$compaction","error":{"kind":"owner-lost","text":"x"}}
-- decide @99s --
(none)
-- state --
queued last=t1,completed queued=m1 compaction=held,on-send,owner-lost compacted=failed,failures=1 used=1200/1000 warn
-- request --
send {"message":"m2","content":"well?","by":"ada"}
-- result --
8 message.accepted {"message":"m2","content":"well?","synthetic":false,"by":"ada"}
8 compaction.requested {"compaction":"compaction-fqinzd2wrtxxbgddo2yh","reason":"on-send","used":1200,"limit":1000,"follow_up":"message","message":"m1"}
