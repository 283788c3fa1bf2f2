The places in the log order facts before and after a compaction, because two commits may have one instant (§2.6).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=compaction compaction.requested {"compaction":"k1","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
4 compaction.started {"compaction":"k1"}
5 compaction.completed {"compaction":"k1"}
6 @5s turn.completed {"turn":"t1"}
7 @6s usage.reported {"turn":"t1","model":"m","tokens":{"input":50}}
-- state last_turn last_compaction usage --
last_turn: {"id":"t1","outcome":"completed","at":"@5s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":6}
last_compaction: {"id":"k1","outcome":"completed","reason":"mid-stream","used_before":800,"used_after":0,"at":"@5s","failures":0,"seq":5,"used_least":50,"progress":true,"follow_up":"continue","turn":"t1"}
usage: {"tokens":{"input":50,"cache_read":0,"cache_write":0,"output":0,"reasoning":0},"used":50,"limit":0,"percent":0,"warn":false,"at":"@6s"}
-- ignored --
(none)
