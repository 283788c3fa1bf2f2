A manual compaction takes over the follow-up of the failed one (C8, C16).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":1200}}
-- decide --
4 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 120 %: it is compacted, then this continues"}
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":1200,"limit":1000,"follow_up":"continue"}
-- facts --
5 turn.stopped {"turn":"t1","actor":"compaction"}
-- facts --
6 compaction.started {"compaction":"$compaction"}
7 compaction.failed {"compaction":"$compaction","error":{"kind":"authentication","text":"x"}}
-- decide --
(none)
-- state --
idle owned-by=17 last=t1,stopped compaction=held,mid-stream,authentication compacted=failed,failures=1 used=1200/1000 warn
-- request --
compact {"by":"ada"}
-- result --
8 compaction.requested {"compaction":"compaction-uyuwztao3tkvokpp53i2","reason":"manual","used":1200,"limit":1000,"follow_up":"continue"}
-- facts --
9 compaction.started {"compaction":"$compaction"}
10 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
11 turn.requested {"turn":"turn-yzv2pmoin43bh6xug5lr","cause":"follow-up","of_turn":"t1","compaction":"compaction-uyuwztao3tkvokpp53i2"}
