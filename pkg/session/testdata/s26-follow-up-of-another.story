The follow-up of a compaction stays pending when a turn is requested that is not its follow-up (C6, §2.6).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=compaction turn.stop_requested {"turn":"t1","actor":"compaction"}
3 by=compaction compaction.requested {"compaction":"k1","reason":"mid-stream","used":80,"limit":100,"follow_up":"continue"}
4 turn.stopped {"turn":"t1","actor":"compaction"}
5 compaction.started {"compaction":"k1"}
6 compaction.completed {"compaction":"k1"}
7 by=retry turn.requested {"turn":"t2","cause":"retry","of_turn":"t1"}
-- state last_compaction pending --
last_compaction: {"id":"k1","outcome":"completed","reason":"mid-stream","used_before":80,"used_after":0,"at":"@6s","failures":0,"seq":6,"follow_up":"continue","turn":"t1"}
pending: {"turn":{"turn":"t2","cause":"retry","of_turn":"t1","attempt":0,"at":"@7s","seq":7}}
-- facts --
8 by=compaction turn.requested {"turn":"t3","cause":"follow-up","of_turn":"t1","compaction":"k1"}
-- state last_compaction pending --
last_compaction: {"id":"k1","outcome":"completed","reason":"mid-stream","used_before":80,"used_after":0,"at":"@6s","failures":0,"seq":6,"turn":"t1"}
pending: {"turn":{"turn":"t3","cause":"follow-up","of_turn":"t1","attempt":0,"compaction":"k1","at":"@8s","seq":8}}
