A forced manual compaction supersedes the question first: its owner closes the call and continues, and the compaction
follows when the turn has ended (C12).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
-- request --
compact {"by":"ada","force":true}
-- result --
4 prompt.superseded {"prompt":"p1","message":""}
4 compaction.requested {"compaction":"compaction-oumvmk52fculeetezijg","reason":"manual","used":0,"limit":1000}
-- state --
compacting owned-by=17 turn=t1,message call=c1 prompt=p1,superseded compaction=requested,manual
-- facts --
5 tool.failed {"call":"c1","error":{"kind":"superseded","text":"x"}}
6 turn.completed {"turn":"t1"}
-- decide --
(none)
-- state --
compacting owned-by=17 last=t1,completed compaction=requested,manual
