A person stops the turn while the harness stops it for the compaction. The harness confirms the stop with the actor that
it read first, compaction. The turn does not continue after the compaction (C5, R15).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
4 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- facts --
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"compaction"}
7 compaction.started {"compaction":"$compaction"}
8 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
(none)
-- state --
idle owned-by=17 last=t1,stopped compacted=completed
