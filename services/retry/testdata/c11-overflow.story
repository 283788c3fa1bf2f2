A conversation that is too long is left to compaction, once for each message; the second time it is abandoned, with the
reason (C11, T3, T5).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"context_exceeded","text":"x"},"had_output":false}
-- decide @60s --
(none)
-- state --
idle owned-by=17 last=t1,failed,context_exceeded retry=,attempt=0,same=1,resumes=0
-- facts --
4 by=compaction compaction.requested {"compaction":"k1","reason":"mid-stream","used":3,"limit":2,"follow_up":"continue","message":"m1"}
-- decide --
(none)
-- facts --
5 compaction.started {"compaction":"k1"}
6 compaction.completed {"compaction":"k1"}
-- decide --
(none)
-- facts --
7 by=compaction turn.requested {"turn":"t2","cause":"follow-up","of_turn":"t1","message":"m1","compaction":"k1"}
8 turn.started {"turn":"t2","synthetic":true}
9 turn.failed {"turn":"t2","error":{"kind":"context_exceeded","text":"x"},"had_output":false}
-- decide --
10 retry.abandoned {"turn":"t2","attempt":0,"reason":"context_exceeded"}
-- state --
idle owned-by=17 last=t2,failed,context_exceeded compaction=stalled,mid-stream,no_progress compacted=completed retry=abandoned,attempt=0,same=2,resumes=0,context_exceeded
