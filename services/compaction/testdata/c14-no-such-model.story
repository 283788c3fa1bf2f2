One model_not_found ends idle compaction (C14).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"idle_compaction_after_s":60}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":300}}
4 turn.completed {"turn":"t1"}
-- decide idle @64s --
5 compaction.requested {"compaction":"compaction-pmxptjlznlpfz72ujsw5","reason":"idle","used":300,"limit":1000}
-- facts --
66 compaction.started {"compaction":"$compaction"}
67 compaction.failed {"compaction":"$compaction","error":{"kind":"model_not_found","text":"x"}}
-- decide idle @600s --
(none)
-- request --
check {}
-- result --
{"would":false,"reason":"suppressed","used":300,"limit":1000}
