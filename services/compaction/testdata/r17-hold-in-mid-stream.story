With policy hold a turn that was stopped for a compaction does not continue automatically after the harness died in it,
even if it fits: nothing runs until a person sends a message or resumes. It shows as interrupted, and check returns held
(R14, R17).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
4 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- facts --
5 turn.stopped {"turn":"t1","actor":"compaction"}
6 compaction.started {"compaction":"$compaction"}
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 by=reconciler compaction.failed {"compaction":"$compaction","error":{"kind":"owner-lost","text":"x"}}
-- decide @99s --
(none)
-- state --
interrupted last=t1,stopped compaction=held,mid-stream,owner-lost compacted=failed,failures=1 used=800/1000 warn
-- request --
check {}
-- result --
{"would":false,"reason":"held","used":800,"limit":1000,"state":"held"}
-- request --
check {"used":100}
-- result --
{"would":false,"reason":"below_threshold","used":100,"limit":1000,"state":"held"}
-- request --
send {"message":"m1","content":"well?","by":"ada"}
-- result --
8 message.accepted {"message":"m1","content":"well?","synthetic":false,"by":"ada"}
8 compaction.requested {"compaction":"compaction-gg7ry2btio3644qz766o","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- state --
compacting last=t1,stopped queued=m1 compaction=requested,mid-stream compacted=failed,failures=1 used=800/1000 warn
