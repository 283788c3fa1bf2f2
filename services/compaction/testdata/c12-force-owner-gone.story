The asker is gone: the same commit closes the call, and the waiting turn continues after the compaction (C12).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request --
compact {"by":"ada","force":true}
-- result --
5 prompt.superseded {"prompt":"p1","message":""}
5 tool.failed {"call":"c1","error":{"kind":"superseded","text":"a person had the conversation compacted instead of answering"},"synthetic":true}
5 turn.requested {"turn":"turn-hyh4ne5gxwnswizoobcy","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
5 compaction.requested {"compaction":"compaction-nfoh6qsemewj53vi2mn6","reason":"manual","used":0,"limit":1000}
-- state --
compacting turn=t1,message requested=turn-hyh4ne5gxwnswizoobcy,answer,of=t1 compaction=requested,manual
-- facts --
6 session.claimed {"incarnation":"18"}
6 compaction.started {"compaction":"$compaction"}
7 compaction.completed {"compaction":"$compaction"}
-- decide --
(none)
-- state --
queued owned-by=18 turn=t1,message requested=turn-hyh4ne5gxwnswizoobcy,answer,of=t1 compacted=completed
