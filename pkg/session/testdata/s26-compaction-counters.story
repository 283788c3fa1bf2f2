Failed compactions are counted in a row, a completed one clears the count; usage of before it is dropped; in mid-stream a compaction is noted on its turn (§2.6).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":100,"cache_read":500,"cache_write":50,"output":900,"reasoning":90}}
-- state usage --
usage: {"tokens":{"input":100,"cache_read":500,"cache_write":50,"output":900,"reasoning":90},"used":650,"limit":1000,"percent":65,"warn":true,"at":"@3s"}
-- facts --
4 by=compaction compaction.requested {"compaction":"k1","reason":"idle","used":650,"limit":1000}
5 compaction.failed {"compaction":"k1","error":{"kind":"server_error","text":"x"}}
6 by=compaction compaction.requested {"compaction":"k2","reason":"mid-stream","used":650,"limit":1000,"follow_up":"continue"}
7 compaction.started {"compaction":"k2"}
8 by=compaction compaction.failed {"compaction":"k2","error":{"kind":"server_error","text":"x"}}
-- state last_compaction turn usage --
last_compaction: {"id":"k2","outcome":"failed","reason":"mid-stream","used_before":650,"used_after":0,"at":"@8s","failures":2,"seq":8,"follow_up":"continue","turn":"t1","error":{"kind":"server_error","text":"x"}}
turn: {"id":"t1","cause":"message","synthetic":false,"compaction":"k2","since":"@2s","attempt":1,"epoch":1}
usage: {"tokens":{"input":100,"cache_read":500,"cache_write":50,"output":900,"reasoning":90},"used":650,"limit":1000,"percent":65,"warn":true,"at":"@3s"}
-- facts --
9 by=compaction compaction.requested {"compaction":"k3","reason":"mid-stream","used":650,"limit":1000,"follow_up":"continue"}
10 turn.stopped {"turn":"t1","actor":"compaction"}
11 compaction.started {"compaction":"k3"}
12 compaction.completed {"compaction":"k3","used_after":100}
13 usage.reported {"turn":"t1","model":"m","tokens":{"input":650}}
-- ignored --
13: 1, the last usage.reported by harness: turn-ended
-- state last_compaction usage --
last_compaction: {"id":"k3","outcome":"completed","reason":"mid-stream","used_before":650,"used_after":100,"at":"@12s","failures":0,"seq":12,"used_least":100,"follow_up":"continue","turn":"t1"}
usage: (nothing)
-- facts --
14 by=compaction turn.requested {"turn":"t2","cause":"follow-up","of_turn":"t1","compaction":"k3"}
15 turn.started {"turn":"t2","cause":"follow-up","synthetic":true,"of_turn":"t1"}
16 usage.reported {"turn":"t2","model":"m2","tokens":{"input":700,"cache_read":600},"input_includes_cached":true,"context_limit":2000}
17 turn.completed {"turn":"t2"}
18 usage.reported {"turn":"t2","model":"m2","tokens":{"input":1100}}
-- state last_compaction usage model --
last_compaction: {"id":"k3","outcome":"completed","reason":"mid-stream","used_before":650,"used_after":100,"at":"@12s","failures":0,"seq":12,"used_least":700,"progress":true,"turn":"t1"}
usage: {"tokens":{"input":1100,"cache_read":0,"cache_write":0,"output":0,"reasoning":0},"used":1100,"limit":2000,"percent":55,"warn":false,"at":"@18s"}
model: "m2"
