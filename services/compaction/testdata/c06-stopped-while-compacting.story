A person stops while the conversation is compacted for a message: the message stays in the queue until the person sends
another one, and is then handed out first, once (C6, C7, R15).

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
7 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
8 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
(none)
-- state --
queued owned-by=17 last=t1,completed queued=m1 stop=t1,person compacted=completed
-- request --
send {"message":"m2","content":"go on","by":"ada"}
-- result --
9 message.accepted {"message":"m2","content":"go on","synthetic":false,"by":"ada"}
9 turn.requested {"turn":"turn-zmgocnuw4q6fezhpvc6t","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- facts --
10 turn.started {"turn":"$requested","cause":"follow-up"}
11 turn.completed {"turn":"$turn"}
-- decide --
12 turn.requested {"turn":"turn-qe2g4vo3dmx72qy53muo","cause":"message","message":"m2"}
