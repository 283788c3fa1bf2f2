An idle session without an owner is not compacted: no process could do it (C13).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"idle_compaction_after_s":60}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":300}}
4 turn.completed {"turn":"t1"}
5 session.released {}
-- decide @600s --
(none)
-- decide idle --
(none)
-- request --
check {}
-- result --
{"would":false,"reason":"waiting","used":300,"limit":1000}
