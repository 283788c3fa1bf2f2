A person's stop abandons a retry (T11, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- decide @60s --
(none)
-- state --
idle owned-by=17 last=t1,failed,server_error stop=t1,person retry=abandoned,attempt=1,same=1,resumes=0,stopped
