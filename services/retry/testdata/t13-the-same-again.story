A retry repeats the turn with its message and its options; after a compaction the follow-up is retried, not the
compaction (T13).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=compaction compaction.requested {"compaction":"k1","reason":"on-send","used":1,"limit":2,"follow_up":"message","message":"m1"}
3 compaction.started {"compaction":"k1"}
4 compaction.completed {"compaction":"k1"}
-- decide --
(none)
-- facts --
5 by=compaction turn.requested {"turn":"t1","cause":"follow-up","message":"m1","compaction":"k1","options":{"model":"big"}}
6 turn.started {"turn":"$requested","synthetic":false}
7 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":true}
-- decide --
8 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@9s","error":{"kind":"server_error","text":"x"}}
-- decide @9s --
9 turn.requested {"turn":"turn-ksdhnclgw7msybwksnbm","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying owned-by=17 last=t1,failed,server_error requested=turn-ksdhnclgw7msybwksnbm,retry,of=t1,message=m1 compacted=completed retry=starting,attempt=1,same=1,resumes=0
