A person's stop request before or right after the failure wins over the decision about it (T11, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
5 retry.abandoned {"turn":"t1","attempt":0,"reason":"stopped"}
-- state --
idle owned-by=17 last=t1,failed,server_error stop=t1,person retry=abandoned,attempt=0,same=1,resumes=0,stopped
-- facts --
6 turn.started {"turn":"t2","cause":"message","message":"m-t2"}
7 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
8 by=ledger turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
-- decide --
9 retry.abandoned {"turn":"t2","attempt":0,"reason":"stopped"}
-- state --
idle owned-by=17 last=t2,failed,server_error stop=t2,person retry=abandoned,attempt=0,same=1,resumes=0,stopped
