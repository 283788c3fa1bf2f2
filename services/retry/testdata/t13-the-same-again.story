A retry is the same turn again: its message, its options; after a compaction the follow-up is tried again, not the compaction (T13).

-- facts --
1 session.opened {"incarnation":"17"}
2/compaction compaction.requested {"compaction":"k1","reason":"on-send","used":1,"limit":2,"follow_up":"message","message":"m1"}
3 compaction.started {"compaction":"k1"}
4 compaction.completed {"compaction":"k1"}
-- decide --
nothing
-- facts --
5/compaction turn.requested {"turn":"t1","cause":"follow-up","message":"m1","compaction":"k1","options":{"model":"big"}}
6 turn.started {"turn":"@asked","synthetic":false}
7 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":true}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:09Z","error":{"kind":"server_error","text":"x"}}
-- at --
9
-- decide --
turn.requested {"turn":"turn-ksdhnclgw7msybwksnbm","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying last=t1,failed asked=turn-ksdhnclgw7msybwksnbm,retry,of=t1 retry=starting,attempt=1,same=1,resumes=0
