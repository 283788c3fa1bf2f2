A summary as long as the original: no second compaction until usage has fallen; the document says stalled (C9).

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
7 compaction.completed {"compaction":"$compaction","used_after":790}
-- decide --
8 turn.requested {"turn":"turn-m6u2jl2lkr3pilwhwdy4","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- facts --
9 turn.started {"turn":"$requested","cause":"follow-up"}
10 usage.reported {"turn":"$turn","model":"m","tokens":{"input":790}}
-- decide --
(none)
-- state --
running owned-by=17 turn=turn-m6u2jl2lkr3pilwhwdy4,follow-up last=t1,completed compaction=stalled,on-send,no_progress compacted=completed used=790/1000 warn
-- facts --
11 turn.completed {"turn":"$turn"}
-- request --
check {}
-- result --
{"would":false,"reason":"stalled","used":790,"limit":1000,"state":"stalled"}
-- request --
send {"message":"m2","content":"more","by":"ada"}
-- result --
12 message.accepted {"message":"m2","content":"more","synthetic":false,"by":"ada"}
12 turn.requested {"turn":"turn-qe2g4vo3dmx72qy53muo","cause":"message","message":"m2"}
-- state --
queued owned-by=17 last=turn-m6u2jl2lkr3pilwhwdy4,completed queued=m2 requested=turn-qe2g4vo3dmx72qy53muo,message,message=m2 compaction=stalled,on-send,no_progress compacted=completed used=790/1000 warn
-- facts --
13 turn.started {"turn":"$requested","cause":"message"}
14 usage.reported {"turn":"$turn","model":"m","tokens":{"input":400}}
15 usage.reported {"turn":"$turn","model":"m","tokens":{"input":720}}
16 turn.completed {"turn":"$turn"}
-- state --
idle owned-by=17 last=turn-qe2g4vo3dmx72qy53muo,completed compacted=completed used=720/1000 warn
-- request --
send {"message":"m3","content":"more","by":"ada"}
-- result --
17 message.accepted {"message":"m3","content":"more","synthetic":false,"by":"ada"}
17 compaction.requested {"compaction":"compaction-vmypkd637jazfhsoyoop","reason":"on-send","used":720,"limit":1000,"follow_up":"message","message":"m3"}
