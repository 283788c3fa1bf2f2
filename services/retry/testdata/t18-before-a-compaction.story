A turn that is silent while a compaction waits for it stalls; while a compaction runs it does not (T18, C5).

-- facts --
1 session.opened {"incarnation":"17","policy":{"stall_after_s":60}}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 by=compaction turn.stop_requested {"turn":"t1","actor":"compaction"}
3 by=compaction compaction.requested {"compaction":"k1","reason":"mid-stream","used":3,"limit":2,"follow_up":"continue","message":"m1"}
-- decide --
watch @63s
-- facts --
4 compaction.started {"compaction":"k1"}
-- decide --
(none)
