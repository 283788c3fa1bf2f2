A turn that its process has left, or one of an earlier epoch, belongs to recovery: it is not stopped for a compaction
(C5).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 session.released {}
-- decide --
(none)
-- facts --
5 session.claimed {"incarnation":"18"}
-- decide --
(none)
-- facts --
6 turn.started {"turn":"t1","cause":"message"}
-- decide --
7 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
7 compaction.requested {"compaction":"compaction-wjvkpveppeycay5ki642","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
