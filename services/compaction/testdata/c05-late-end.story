A late end of the stopped turn is not the compaction's end: ids tell them apart. A turn that completed all the same does
not continue (C5).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
4 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- facts --
5 compaction.started {"compaction":"$compaction"}
-- facts --
6 turn.completed {"turn":"t1"}
-- decide --
watch @606s
-- state --
compacting owned-by=17 last=t1,completed stop=t1,compaction compaction=running,mid-stream used=800/1000 warn
-- facts --
7 compaction.completed {"compaction":"$compaction"}
-- decide --
(none)
-- state --
idle owned-by=17 last=t1,completed stop=t1,compaction compacted=completed
