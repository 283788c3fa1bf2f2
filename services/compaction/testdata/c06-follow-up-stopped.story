A person stops the follow-up before a turn has taken it: the message stays in the queue, and later is handed out like
any other; the compaction has no second follow-up (C6, C7).

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
7 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
8 turn.requested {"turn":"turn-m6u2jl2lkr3pilwhwdy4","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- facts --
9 by=ledger turn.stop_requested {"turn":"$requested","actor":"person","by":"ada"}
-- decide --
(none)
-- state --
queued owned-by=17 last=turn-m6u2jl2lkr3pilwhwdy4,stopped queued=m1 stop=turn-m6u2jl2lkr3pilwhwdy4,person compacted=completed
-- request --
send {"message":"m2","content":"go on","by":"ada"}
-- result --
10 message.accepted {"message":"m2","content":"go on","synthetic":false,"by":"ada"}
10 turn.requested {"turn":"turn-bckj754dsu7bngyctn3i","cause":"message","message":"m1"}
-- state --
queued owned-by=17 last=turn-m6u2jl2lkr3pilwhwdy4,stopped queued=m1 queued=m2 requested=turn-bckj754dsu7bngyctn3i,message,message=m1 stop=turn-m6u2jl2lkr3pilwhwdy4,person compacted=completed
