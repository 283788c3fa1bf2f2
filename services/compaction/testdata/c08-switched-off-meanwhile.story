Automatic compaction is disabled while a failed one waits for its retry: the follow-up is handed out without it (C8,
C3).

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
6 compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}
-- decide --
look @8s
-- facts --
7 by=ledger session.configured {"policy":{"compaction_threshold":1.0},"by":"ada"}
-- decide --
8 turn.requested {"turn":"turn-m6u2jl2lkr3pilwhwdy4","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-m6u2jl2lkr3pilwhwdy4,follow-up,message=m1 compacted=failed,failures=1 used=800/1000
