A turn that comes to its end clears the attempts and what was scheduled (T7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- state --
retrying last=t1,failed retry=scheduled,attempt=1,same=1,resumes=0,due=5
-- facts --
5 turn.started {"turn":"t2","cause":"follow-up","synthetic":true}
6 turn.completed {"turn":"t2"}
-- at --
60
-- decide --
nothing
-- state --
idle last=t2,completed
