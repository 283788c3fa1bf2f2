Cancel also applies to a failure that is not decided yet (T16, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- request --
cancel {"by":"ada"}
-- result --
4 retry.abandoned {"turn":"t1","attempt":0,"reason":"cancelled"}
-- decide @60s --
(none)
-- state --
idle owned-by=17 last=t1,failed,server_error retry=abandoned,attempt=0,same=1,resumes=0,cancelled
