The end of an unknown compaction, or a second end of one, changes nothing (C6).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 turn.completed {"turn":"t1"}
5 late compaction.completed {"compaction":"k9"}
6 late compaction.failed {"compaction":"k9","error":{"kind":"x","text":"x"}}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
7 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
7 compaction.requested {"compaction":"compaction-dohsftvd4acjkgi4eoqw","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
8 late compaction.completed {"compaction":"k9"}
-- facts --
9 compaction.started {"compaction":"$compaction"}
10 compaction.completed {"compaction":"$compaction","used_after":100}
-- facts --
11 late compaction.completed {"compaction":"$last-compaction"}
12 late compaction.failed {"compaction":"$last-compaction","error":{"kind":"x","text":"x"}}
-- decide --
13 turn.requested {"turn":"turn-j4wpxadpq3jctj4kfyhz","cause":"follow-up","message":"m1","compaction":"compaction-dohsftvd4acjkgi4eoqw"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-j4wpxadpq3jctj4kfyhz,follow-up,message=m1 compacted=completed
