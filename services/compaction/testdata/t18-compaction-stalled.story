A compaction whose harness hangs in it fails after stall_after without a fact or a ping, and is retried like any other
failed one. Later facts of the harness about it are ignored: its message is handed out once, after the completed
compaction (T18, C8, C6, V14).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"stall_after_s":60}}
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
-- decide --
watch @66s
-- progress --
@50s
-- decide @66s --
watch @110s
-- decide @110s --
7 compaction.failed {"compaction":"compaction-f5itfyrli7px626f7uqs","error":{"kind":"stalled","text":"nothing was heard of it for 1m0s"}}
look @112s
-- state --
queued owned-by=17 last=t1,completed queued=m1 compacted=failed,failures=1 used=800/1000 warn
-- facts --
112 late compaction.completed {"compaction":"$last-compaction"}
-- decide --
113 compaction.requested {"compaction":"compaction-2wnyltyoltxenoq634xj","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
114 late compaction.completed {"compaction":"$last-compaction"}
115 compaction.started {"compaction":"$compaction"}
116 late compaction.failed {"compaction":"$last-compaction","error":{"kind":"server_error","text":"x"}}
117 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
118 turn.requested {"turn":"turn-tcwho3g5nltx7dtgbj2d","cause":"follow-up","message":"m1","compaction":"compaction-2wnyltyoltxenoq634xj"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-tcwho3g5nltx7dtgbj2d,follow-up,message=m1 compacted=completed
