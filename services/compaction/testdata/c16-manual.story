A person may compact at any usage, and while automatic compaction is off; a request for one that is requested already is
a success (C16).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"compaction_threshold":1}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":5}}
4 turn.completed {"turn":"t1"}
-- request --
compact {"by":"ada"}
-- result --
5 compaction.requested {"compaction":"compaction-nfoh6qsemewj53vi2mn6","reason":"manual","used":5,"limit":1000}
-- state --
compacting owned-by=17 last=t1,completed compaction=requested,manual used=5/1000
-- request --
compact {"by":"ben"}
-- result --
nothing to append, see 5
-- facts --
6 compaction.started {"compaction":"$compaction"}
-- request --
compact {"by":"ben"}
-- result --
nothing to append, see 6
-- request --
compact {"by":"ben","force":true}
-- result --
nothing to append, see 6
-- facts --
7 compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}
-- decide --
look @9s
-- decide @9s --
8 compaction.requested {"compaction":"compaction-uyuwztao3tkvokpp53i2","reason":"manual","used":5,"limit":1000}
