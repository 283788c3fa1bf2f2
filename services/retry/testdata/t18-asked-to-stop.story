A silent turn with a person's stop request is failed and not retried (T18, T11).

-- facts --
1 session.opened {"incarnation":"17","policy":{"stall_after_s":60}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- decide @63s --
4 turn.failed {"turn":"t1","error":{"kind":"stalled","text":"nothing was heard of it for 1m0s"},"had_output":false}
-- decide --
5 retry.abandoned {"turn":"t1","attempt":0,"reason":"stopped"}
-- state --
idle owned-by=17 last=t1,failed,stalled stop=t1,person retry=abandoned,attempt=0,same=1,resumes=0,stopped
