A session that was idle for as long as the policy says is compacted when it has its place, once (C13, C15).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"idle_compaction_after_s":60}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":300}}
4 turn.completed {"turn":"t1"}
-- request --
check {}
-- result --
{"would":false,"reason":"not_idle_long_enough","used":300,"limit":1000,"at":"@64s"}
-- decide --
look @64s
-- request @64s --
check {}
-- result --
{"would":true,"reason":"idle","used":300,"limit":1000,"at":"@64s"}
-- decide --
idle since @64s
-- state --
idle owned-by=17 last=t1,completed used=300/1000
-- decide idle --
5 compaction.requested {"compaction":"compaction-pmxptjlznlpfz72ujsw5","reason":"idle","used":300,"limit":1000}
-- state --
compacting owned-by=17 last=t1,completed compaction=requested,idle used=300/1000
-- request --
check {}
-- result --
{"would":false,"reason":"running","used":300,"limit":1000,"state":"requested"}
-- facts --
66 compaction.started {"compaction":"$compaction"}
67 compaction.completed {"compaction":"$compaction"}
-- decide --
(none)
-- request --
check {}
-- result --
{"would":false,"reason":"already_compacted","used":0,"limit":1000}
-- state --
idle owned-by=17 last=t1,completed compacted=completed
