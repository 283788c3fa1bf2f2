At the threshold the message and the compaction are one commit; the message goes to the harness only after it, once (C4).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":700}}
4 turn.completed {"turn":"t1"}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
compaction.requested {"compaction":"compaction-f5itfyrli7px626f7uqs","reason":"on-send","used":700,"limit":1000,"follow_up":"message","message":"m1"}
-- state --
seq=5 compacting owned-by=17 last=t1,completed queued=m1 compaction=requested,on-send used=700/1000 warn=true
-- decide --
nothing
-- facts --
6 compaction.started {"compaction":"$compaction"}
-- decide --
watch 606
-- facts --
7 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
turn.requested {"turn":"turn-m6u2jl2lkr3pilwhwdy4","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- state --
seq=8 queued owned-by=17 last=t1,completed queued=m1 pending=follow-up,m1 compacted=completed,0
-- facts --
9 turn.started {"turn":"$turn","cause":"follow-up"}
-- decide --
nothing
-- state --
seq=9 running owned-by=17 turn=turn-m6u2jl2lkr3pilwhwdy4,follow-up last=t1,completed compacted=completed,0
