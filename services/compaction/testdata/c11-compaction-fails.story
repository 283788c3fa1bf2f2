The compaction of an overflow fails for good: without it the turn does not fit, so it is held, and retry abandons it
(C11, C8).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"context_exceeded","text":"x"},"had_output":false}
-- decide --
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":0,"limit":0,"follow_up":"continue"}
-- facts --
5 compaction.started {"compaction":"$compaction"}
6 compaction.failed {"compaction":"$compaction","error":{"kind":"model_not_found","text":"x"}}
-- decide --
(none)
-- state --
idle owned-by=17 last=t1,failed,context_exceeded compaction=held,mid-stream,model_not_found compacted=failed,failures=1 retry=,attempt=0,same=1,resumes=0
-- facts --
7 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"context_exceeded"}
-- decide --
(none)
-- state --
idle owned-by=17 last=t1,failed,context_exceeded compaction=held,mid-stream,model_not_found compacted=failed,failures=1 retry=abandoned,attempt=0,same=1,resumes=0,context_exceeded
-- request --
compact {"by":"ada"}
-- result --
8 compaction.requested {"compaction":"compaction-uyuwztao3tkvokpp53i2","reason":"manual","used":0,"limit":0,"follow_up":"continue"}
-- facts --
9 compaction.started {"compaction":"$compaction"}
10 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
11 turn.requested {"turn":"turn-yzv2pmoin43bh6xug5lr","cause":"follow-up","of_turn":"t1","compaction":"compaction-uyuwztao3tkvokpp53i2"}
