At the threshold the message and the compaction are one commit; the harness gets the message only after the compaction,
once (C4).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":700}}
4 turn.completed {"turn":"t1"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
5 compaction.requested {"compaction":"compaction-f5itfyrli7px626f7uqs","reason":"on-send","used":700,"limit":1000,"follow_up":"message","message":"m1"}
-- state --
compacting owned-by=17 last=t1,completed queued=m1 compaction=requested,on-send used=700/1000 warn
-- decide --
(none)
-- facts --
6 compaction.started {"compaction":"$compaction"}
-- decide --
watch @606s
-- facts --
7 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
8 turn.requested {"turn":"turn-m6u2jl2lkr3pilwhwdy4","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-m6u2jl2lkr3pilwhwdy4,follow-up,message=m1 compacted=completed
-- facts --
9 turn.started {"turn":"$requested","cause":"follow-up"}
-- decide --
(none)
-- state --
running owned-by=17 turn=turn-m6u2jl2lkr3pilwhwdy4,follow-up last=t1,completed compacted=completed
