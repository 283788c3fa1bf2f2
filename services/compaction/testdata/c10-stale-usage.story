Usage from before the compaction, or a late report of an earlier turn, is ignored (C10).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":900}}
4 turn.completed {"turn":"t1"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
5 compaction.requested {"compaction":"compaction-f5itfyrli7px626f7uqs","reason":"on-send","used":900,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
6 compaction.started {"compaction":"$compaction"}
7 compaction.completed {"compaction":"$compaction","used_after":100}
-- facts --
8 late usage.reported {"turn":"t1","model":"m","tokens":{"input":950}}
-- decide --
9 turn.requested {"turn":"turn-zmgocnuw4q6fezhpvc6t","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-zmgocnuw4q6fezhpvc6t,follow-up,message=m1 compacted=completed
-- facts --
10 turn.started {"turn":"$requested","cause":"follow-up"}
11 turn.completed {"turn":"$turn"}
-- request --
send {"message":"m2","content":"more","by":"ada"}
-- result --
12 message.accepted {"message":"m2","content":"more","synthetic":false,"by":"ada"}
12 turn.requested {"turn":"turn-qe2g4vo3dmx72qy53muo","cause":"message","message":"m2"}
-- state --
queued owned-by=17 last=turn-zmgocnuw4q6fezhpvc6t,completed queued=m2 requested=turn-qe2g4vo3dmx72qy53muo,message,message=m2 compacted=completed
