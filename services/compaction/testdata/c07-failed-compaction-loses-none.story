A failed compaction changes neither the messages nor their order (C7, C8).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 turn.completed {"turn":"t1"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
5 compaction.requested {"compaction":"compaction-f5itfyrli7px626f7uqs","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- request --
send {"message":"m2","content":"and then","by":"ada"}
-- result --
6 message.accepted {"message":"m2","content":"and then","synthetic":false,"by":"ada"}
-- facts --
7 compaction.started {"compaction":"$compaction"}
8 compaction.failed {"compaction":"$compaction","error":{"kind":"aborted","text":"x"}}
-- decide --
9 turn.requested {"turn":"turn-zmgocnuw4q6fezhpvc6t","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 queued=m2 requested=turn-zmgocnuw4q6fezhpvc6t,follow-up,message=m1 compacted=failed,failures=1 used=800/1000 warn
-- facts --
10 turn.started {"turn":"$requested","cause":"follow-up"}
11 turn.completed {"turn":"$turn"}
-- decide --
12 compaction.requested {"compaction":"compaction-k5xg5q7r5347ony6k6rj","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m2"}
-- state --
compacting owned-by=17 last=turn-zmgocnuw4q6fezhpvc6t,completed queued=m2 compaction=requested,on-send compacted=failed,failures=1 used=800/1000 warn
