The failure is permanent and the follow-up does not fit: it is held, with the reason. A larger limit releases it (C8).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":1200}}
4 turn.completed {"turn":"t1"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
5 compaction.requested {"compaction":"compaction-f5itfyrli7px626f7uqs","reason":"on-send","used":1200,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
6 compaction.started {"compaction":"$compaction"}
7 compaction.failed {"compaction":"$compaction","error":{"kind":"quota","text":"x"}}
-- decide --
(none)
-- state --
queued owned-by=17 last=t1,completed queued=m1 compaction=held,on-send,quota compacted=failed,failures=1 used=1200/1000 warn
-- facts --
8 by=ledger session.configured {"policy":{"context_limit":2000},"by":"ada"}
-- decide --
9 turn.requested {"turn":"turn-zmgocnuw4q6fezhpvc6t","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-zmgocnuw4q6fezhpvc6t,follow-up,message=m1 compacted=failed,failures=1 used=1200/2000 warn
