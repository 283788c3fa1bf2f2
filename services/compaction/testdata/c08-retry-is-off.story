While automatic retry is off a failed compaction is not retried automatically (C8).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
4 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- facts --
5 turn.stopped {"turn":"t1","actor":"compaction"}
-- facts --
6 compaction.started {"compaction":"$compaction"}
7 compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}
-- facts --
8 by=ledger session.configured {"policy":{"auto_retry":false},"by":"ada"}
-- decide --
9 turn.requested {"turn":"turn-2qhmkwrkdcclqbsmslcy","cause":"follow-up","of_turn":"t1","compaction":"compaction-w6yt3bpxhkrtkuzhisxv"}
-- state --
queued owned-by=17 last=t1,stopped requested=turn-2qhmkwrkdcclqbsmslcy,follow-up,of=t1 compacted=failed,failures=1 used=800/1000 warn auto-retry=off
-- facts --
10 turn.started {"turn":"$requested","cause":"follow-up"}
11 usage.reported {"turn":"$turn","model":"m","tokens":{"input":900}}
-- decide --
(none)
