Switched off, a scheduled retry is given up, also in a later life of the service; what fails then is not scheduled; switched on again by policy, nothing starts by itself (T8).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- facts --
5 session.configured {"policy":{"auto_retry":false},"by":"ada"}
-- decide --
retry.abandoned {"turn":"t1","attempt":1,"reason":"disabled_by_user"}
-- state --
idle last=t1,failed retry=abandoned,attempt=1,same=1,resumes=0,reason=disabled_by_user auto_retry=off
-- at --
60
-- decide --
nothing
-- facts --
7 turn.started {"turn":"t2","cause":"message","synthetic":true}
8 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t2","attempt":1,"reason":"disabled_by_user"}
-- state --
idle last=t2,failed retry=abandoned,attempt=1,same=2,resumes=0,reason=disabled_by_user auto_retry=off
-- facts --
10 session.configured {"policy":{"auto_retry":true},"by":"ada"}
-- decide --
nothing
-- state --
idle last=t2,failed retry=abandoned,attempt=1,same=2,resumes=0,reason=disabled_by_user
