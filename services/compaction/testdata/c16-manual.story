By hand at any usage, and while automatic compaction is off; one that is wanted already is a success (C16).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"compaction_threshold":1}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":5}}
4 turn.completed {"turn":"t1"}
-- wish --
compact {"by":"ada"}
-- comes to --
compaction.requested {"compaction":"compaction-nfoh6qsemewj53vi2mn6","reason":"manual","used":5,"limit":1000}
-- state --
seq=5 compacting owned-by=17 last=t1,completed compaction=requested,manual used=5/1000 warn=false
-- wish --
compact {"by":"ben"}
-- comes to --
done at 5
-- facts --
6 compaction.started {"compaction":"$compaction"}
-- wish --
compact {"by":"ben"}
-- comes to --
done at 6
-- wish --
compact {"by":"ben","force":true}
-- comes to --
done at 6
-- facts --
7 compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}
-- decide --
look 9
-- at --
9
-- decide --
compaction.requested {"compaction":"compaction-uyuwztao3tkvokpp53i2","reason":"manual","used":5,"limit":1000}
