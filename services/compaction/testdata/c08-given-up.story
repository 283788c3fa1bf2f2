After as many failures in a row as the policy allows the compaction is abandoned; its follow-up is handed out without it
(C8).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"retry_max":2}}
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
-- decide @9s --
8 compaction.requested {"compaction":"compaction-fqinzd2wrtxxbgddo2yh","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
10 compaction.started {"compaction":"$compaction"}
11 compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}
-- decide --
12 turn.requested {"turn":"turn-osyazqsx7bsfmknnwmbd","cause":"follow-up","message":"m1","compaction":"compaction-fqinzd2wrtxxbgddo2yh"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-osyazqsx7bsfmknnwmbd,follow-up,message=m1 compacted=failed,failures=2 used=800/1000 warn
