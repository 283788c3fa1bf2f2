A transient failure: the compaction itself is retried, after 2 s, then 4 s; its follow-up stays pending (C8, T13).

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
-- facts --
6 compaction.started {"compaction":"$compaction"}
7 compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}
-- decide --
look @9s
-- state --
queued owned-by=17 last=t1,completed queued=m1 compacted=failed,failures=1 used=800/1000 warn
-- decide @9s --
8 compaction.requested {"compaction":"compaction-fqinzd2wrtxxbgddo2yh","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
10 compaction.started {"compaction":"$compaction"}
11 compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}
-- decide --
look @15s
-- decide @15s --
12 compaction.requested {"compaction":"compaction-k5xg5q7r5347ony6k6rj","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
16 compaction.started {"compaction":"$compaction"}
17 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
18 turn.requested {"turn":"turn-ezl2xz5uefs5gzfr74jk","cause":"follow-up","message":"m1","compaction":"compaction-k5xg5q7r5347ony6k6rj"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-ezl2xz5uefs5gzfr74jk,follow-up,message=m1 compacted=completed
