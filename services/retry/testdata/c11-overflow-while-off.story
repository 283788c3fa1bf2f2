While automatic compaction is off, a conversation that is too long is abandoned at once (C11, T5).

-- facts --
1 session.opened {"incarnation":"17","policy":{"compaction_threshold":1}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"context_exceeded","text":"x"},"had_output":false}
-- decide --
4 retry.abandoned {"turn":"t1","attempt":0,"reason":"context_exceeded"}
-- state --
idle owned-by=17 last=t1,failed,context_exceeded retry=abandoned,attempt=0,same=1,resumes=0,context_exceeded
