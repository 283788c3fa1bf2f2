A compaction after which usage is as high as before is shown as stalled until usage has fallen; overflows are counted until there is progress (§2.6).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message","message":"m-t1"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 turn.completed {"turn":"t1"}
5 by=compaction compaction.requested {"compaction":"k1","reason":"manual","used":800,"limit":1000}
6 compaction.started {"compaction":"k1"}
7 compaction.completed {"compaction":"k1","used_after":100}
-- state compaction --
compaction: (nothing)
-- facts --
8 turn.started {"turn":"t2","cause":"message","message":"m-t2"}
9 usage.reported {"turn":"t2","model":"m","tokens":{"input":790}}
-- state compaction last_compaction --
compaction: {"state":"stalled","id":"k1","reason":"manual","since":"@7s","used":800,"limit":1000,"epoch":1,"error":{"kind":"no_progress","text":"800 tokens before the compaction, 790 after: another one would not help"}}
last_compaction: {"id":"k1","outcome":"completed","reason":"manual","used_before":800,"used_after":100,"at":"@7s","failures":0,"seq":7,"used_least":790}
-- facts --
10 usage.reported {"turn":"t2","model":"m","tokens":{"input":600}}
-- state compaction last_compaction --
compaction: (nothing)
last_compaction: {"id":"k1","outcome":"completed","reason":"manual","used_before":800,"used_after":100,"at":"@7s","failures":0,"seq":7,"used_least":600}
-- facts --
11 turn.failed {"turn":"t2","error":{"kind":"context_exceeded","text":"too long"},"had_output":false}
12 turn.started {"turn":"t3","cause":"retry"}
13 turn.failed {"turn":"t3","error":{"kind":"context_exceeded","text":"too long"},"had_output":false}
-- state retry held_seq --
retry: {"attempt":0,"error":{"kind":"context_exceeded","text":"too long"},"same_failures":2,"resumes":0,"overflows":2}
held_seq: 13
-- facts --
14 by=compaction turn.requested {"turn":"t4","cause":"follow-up","of_turn":"t3","message":"m1","compaction":"k1"}
15 turn.started {"turn":"t4","cause":"follow-up"}
-- state retry held_seq active_at --
retry: {"attempt":0,"error":{"kind":"context_exceeded","text":"too long"},"same_failures":2,"resumes":0,"overflows":2}
held_seq: 13
active_at: "@8s"
-- facts --
16 turn.completed {"turn":"t4"}
-- state retry held_seq last_compaction --
retry: (nothing)
held_seq: (nothing)
last_compaction: {"id":"k1","outcome":"completed","reason":"manual","used_before":800,"used_after":100,"at":"@7s","failures":0,"seq":7,"used_least":600,"progress":true}
