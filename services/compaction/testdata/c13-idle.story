Nobody has used it for as long as the policy says: it is compacted when its place has come, and not twice (C13, C15).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"idle_compaction_after_s":60}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":300}}
4 turn.completed {"turn":"t1"}
-- wish --
check {}
-- comes to --
{"would":false,"reason":"not_idle_long_enough","used":300,"limit":1000,"at":"2026-03-01T12:01:04Z"}
-- decide --
look 64
-- at --
64
-- wish --
check {}
-- comes to --
{"would":true,"reason":"idle","used":300,"limit":1000,"at":"2026-03-01T12:01:04Z"}
-- decide --
idle since 64
-- state --
seq=4 idle owned-by=17 last=t1,completed used=300/1000 warn=false
-- decide idle --
compaction.requested {"compaction":"compaction-pmxptjlznlpfz72ujsw5","reason":"idle","used":300,"limit":1000}
-- state --
seq=5 compacting owned-by=17 last=t1,completed compaction=requested,idle used=300/1000 warn=false
-- wish --
check {}
-- comes to --
{"would":false,"reason":"running","used":300,"limit":1000,"state":"requested"}
-- facts --
66 compaction.started {"compaction":"$compaction"}
67 compaction.completed {"compaction":"$compaction"}
-- decide --
nothing
-- wish --
check {}
-- comes to --
{"would":false,"reason":"already_compacted","used":0,"limit":1000}
-- state --
seq=67 idle owned-by=17 last=t1,completed compacted=completed,0
