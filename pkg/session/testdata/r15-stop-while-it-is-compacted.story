A stop while the conversation is compacted takes back what was to follow: a turn that was stopped for the compaction does not go on (R15, V9).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 by=compaction turn.stop_requested {"turn":"t1","actor":"compaction"}
4 by=compaction compaction.requested {"compaction":"k1","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
5 turn.stopped {"turn":"t1","actor":"compaction"}
6 compaction.started {"compaction":"k1"}
-- request @7s --
stop {"by":"ada"}
-- result --
7 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- state phase last_turn pending --
phase: "compacting"
last_turn: {"id":"t1","outcome":"stopped","at":"@5s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":5}
pending: {"stop":{"turn":"t1","actor":"person","by":"ada","at":"@7s","seq":7}}
-- request @8s --
stop {"by":"ada"}
-- result --
nothing to append, see 7
-- facts --
8 compaction.completed {"compaction":"k1"}
-- state phase last_compaction pending --
phase: "idle"
last_compaction: {"id":"k1","outcome":"completed","reason":"mid-stream","used_before":800,"used_after":0,"at":"@8s","failures":0,"seq":8,"follow_up":"continue","turn":"t1"}
pending: {"stop":{"turn":"t1","actor":"person","by":"ada","at":"@7s","seq":7}}
