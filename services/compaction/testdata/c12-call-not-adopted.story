The owner runs the turn in which an earlier process asked, and has not adopted the call that waits: the call ends, and no other
turn is requested that would continue its own (C12, P12).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 session.claimed {"incarnation":"18"}
4 turn.started {"turn":"t1","cause":"message"}
-- request --
compact {"by":"ada","force":true}
-- result --
5 prompt.superseded {"prompt":"p1","message":""}
5 tool.failed {"call":"c1","error":{"kind":"superseded","text":"a person had the conversation compacted instead of answering"},"synthetic":true}
5 compaction.requested {"compaction":"compaction-nfoh6qsemewj53vi2mn6","reason":"manual","used":0,"limit":1000}
-- state --
compacting owned-by=18 turn=t1,message compaction=requested,manual
