A turn that a person began meanwhile replaces the continuation (C5, R15).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
4 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- facts --
6 turn.stopped {"turn":"t1","actor":"compaction"}
-- facts --
7 compaction.started {"compaction":"$compaction"}
8 compaction.completed {"compaction":"$compaction","used_after":100}
-- facts --
9 turn.started {"turn":"t2","cause":"message"}
10 turn.completed {"turn":"t2"}
-- decide --
(none)
-- state --
idle owned-by=17 last=t2,completed compacted=completed
