After the compaction its follow-up is handed out first, then the queue in order, each once (C6, C7).

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
-- request --
send {"message":"m2","content":"and then","by":"ada"}
-- result --
6 message.accepted {"message":"m2","content":"and then","synthetic":false,"by":"ada"}
-- request --
send {"message":"m3","content":"and then","by":"ada"}
-- result --
7 message.accepted {"message":"m3","content":"and then","synthetic":false,"by":"ada"}
-- state --
compacting owned-by=17 last=t1,completed queued=m1 queued=m2 queued=m3 compaction=requested,on-send used=800/1000 warn
-- facts --
8 compaction.started {"compaction":"$compaction"}
9 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
10 turn.requested {"turn":"turn-44xufgkl45ur54ty2yp4","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- facts --
11 turn.started {"turn":"$requested","cause":"follow-up"}
-- decide --
(none)
-- facts --
12 turn.completed {"turn":"$turn"}
-- decide --
13 turn.requested {"turn":"turn-cdriwefx6g7nk3ctxixm","cause":"message","message":"m2"}
-- facts --
14 turn.started {"turn":"$requested","cause":"message"}
15 turn.completed {"turn":"$turn"}
-- decide --
16 turn.requested {"turn":"turn-mtsmx36ze45a5dqewyvr","cause":"message","message":"m3"}
-- state --
queued owned-by=17 last=turn-cdriwefx6g7nk3ctxixm,completed queued=m3 requested=turn-mtsmx36ze45a5dqewyvr,message,message=m3 compacted=completed
