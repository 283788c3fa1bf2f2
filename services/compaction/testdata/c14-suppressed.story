Two failures in a row end idle compaction; a person's compaction enables it again (C14, C16).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"idle_compaction_after_s":60}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":300}}
4 turn.completed {"turn":"t1"}
-- decide idle @64s --
5 compaction.requested {"compaction":"compaction-pmxptjlznlpfz72ujsw5","reason":"idle","used":300,"limit":1000}
-- facts --
66 compaction.started {"compaction":"$compaction"}
67 compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}
-- decide idle --
look @69s
-- decide idle @69s --
68 compaction.requested {"compaction":"compaction-scah22or3el66akosw6v","reason":"idle","used":300,"limit":1000}
-- facts --
70 compaction.started {"compaction":"$compaction"}
71 compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}
-- decide idle --
(none)
-- request --
check {}
-- result --
{"would":false,"reason":"suppressed","used":300,"limit":1000}
-- request --
compact {"by":"ada"}
-- result --
72 compaction.requested {"compaction":"compaction-zblifliciwsxabedyvel","reason":"manual","used":300,"limit":1000}
-- facts --
73 compaction.started {"compaction":"$compaction"}
74 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
(none)
-- facts --
75 turn.started {"turn":"t2","cause":"message"}
76 usage.reported {"turn":"t2","model":"m","tokens":{"input":310}}
76 usage.reported {"turn":"t2","model":"m","tokens":{"input":200}}
77 turn.completed {"turn":"t2"}
-- request --
check {}
-- result --
{"would":false,"reason":"not_idle_long_enough","used":200,"limit":1000,"at":"@137s"}
