A completed turn clears the attempts and the scheduled retry (T7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- state --
retrying owned-by=17 last=t1,failed,server_error retry=scheduled,attempt=1,same=1,resumes=0,due=@5s
-- facts --
5 turn.started {"turn":"t2","cause":"follow-up","synthetic":true}
6 turn.completed {"turn":"t2"}
-- decide @60s --
(none)
-- state --
idle owned-by=17 last=t2,completed
