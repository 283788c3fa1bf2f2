After the hand-off the follow-up is retried when it fails, and not the finished compaction (T13).

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
9 turn.started {"turn":"$requested","cause":"follow-up"}
10 turn.failed {"turn":"$turn","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
(none)
-- state --
idle owned-by=17 last=turn-m6u2jl2lkr3pilwhwdy4,failed,server_error compacted=completed retry=,attempt=0,same=1,resumes=0
