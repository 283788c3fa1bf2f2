A person stops the follow-up before a turn has it: the message stays in the queue, and later goes out as any other; the compaction is not followed up twice (C6, C7).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 turn.completed {"turn":"t1"}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
compaction.requested {"compaction":"compaction-f5itfyrli7px626f7uqs","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
6 compaction.started {"compaction":"$compaction"}
7 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
turn.requested {"turn":"turn-m6u2jl2lkr3pilwhwdy4","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- facts --
9/ledger turn.stop_requested {"turn":"$turn","actor":"person","by":"ada"}
-- decide --
nothing
-- state --
seq=9 queued owned-by=17 last=turn-m6u2jl2lkr3pilwhwdy4,stopped queued=m1 compacted=completed,0
-- wish --
send {"message":"m2","content":"go on","by":"ada"}
-- comes to --
message.accepted {"message":"m2","content":"go on","synthetic":false,"by":"ada"}
turn.requested {"turn":"turn-bckj754dsu7bngyctn3i","cause":"message","message":"m1"}
-- state --
seq=10 queued owned-by=17 last=turn-m6u2jl2lkr3pilwhwdy4,stopped queued=m1 queued=m2 pending=message,m1 compacted=completed,0
