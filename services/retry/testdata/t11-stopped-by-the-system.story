A stop by the system abandons nothing: the scheduled retry waits while compaction goes first, and continues when that
has failed (T11).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 by=compaction compaction.requested {"compaction":"k1","reason":"manual","used":1,"limit":2}
-- decide @60s --
(none)
-- state --
compacting owned-by=17 last=t1,failed,server_error compaction=requested,manual retry=scheduled,attempt=1,same=1,resumes=0,due=@5s
-- facts --
6 compaction.started {"compaction":"k1"}
-- decide --
(none)
-- facts --
7 compaction.failed {"compaction":"k1","error":{"kind":"bad_summary","text":"x"}}
-- decide --
8 turn.requested {"turn":"turn-g6nm52yrtrkzs4pvm3bh","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying owned-by=17 last=t1,failed,server_error requested=turn-g6nm52yrtrkzs4pvm3bh,retry,of=t1,message=m1 compacted=failed,failures=1 retry=starting,attempt=1,same=1,resumes=0
