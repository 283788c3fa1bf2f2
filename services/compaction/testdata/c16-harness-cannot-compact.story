A person has a conversation compacted whose harness has no code that compacts. It fails once, and the document says why.
Nothing waits for it: a message is handed out, without another attempt if automatic compaction is off (C8, C16).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"compaction_threshold":1}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":900}}
4 turn.completed {"turn":"t1"}
-- request --
compact {"by":"ada"}
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 compaction.requested {"compaction":"compaction-nfoh6qsemewj53vi2mn6","reason":"manual","used":900,"limit":1000}
6 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- facts --
7 compaction.started {"compaction":"$compaction"}
7 compaction.failed {"compaction":"$compaction","error":{"kind":"runtime_not_ready","text":"no"}}
-- state last_compaction --
last_compaction: {"id":"compaction-nfoh6qsemewj53vi2mn6","outcome":"failed","reason":"manual","used_before":900,"used_after":0,"at":"@7s","failures":1,"seq":7,"error":{"kind":"runtime_not_ready","text":"no"}}
-- decide @600s --
8 turn.requested {"turn":"turn-envaklxki4w26revfpaq","cause":"message","message":"m1"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-envaklxki4w26revfpaq,message,message=m1 compacted=failed,failures=1 used=900/1000
