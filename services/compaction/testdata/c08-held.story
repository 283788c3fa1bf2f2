It will not pass, and it does not fit: held, with the reason. A larger limit lets it go (C8).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":1200}}
4 turn.completed {"turn":"t1"}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
compaction.requested {"compaction":"compaction-f5itfyrli7px626f7uqs","reason":"on-send","used":1200,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
6 compaction.started {"compaction":"$compaction"}
7 compaction.failed {"compaction":"$compaction","error":{"kind":"quota","text":"x"}}
-- decide --
nothing
-- state --
seq=7 queued owned-by=17 last=t1,completed queued=m1 compaction=held,on-send because=quota compacted=failed,1 used=1200/1000 warn=true
-- facts --
8/ledger session.configured {"policy":{"context_limit":2000},"by":"ada"}
-- decide --
turn.requested {"turn":"turn-zmgocnuw4q6fezhpvc6t","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- state --
seq=9 queued owned-by=17 last=t1,completed queued=m1 pending=follow-up,m1 compacted=failed,1 used=1200/2000 warn=true
