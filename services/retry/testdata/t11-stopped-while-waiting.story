A person's stop gives a retry up (T11, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- facts --
5/ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- at --
60
-- decide --
nothing
-- state --
idle last=t1,failed stop=t1,person retry=abandoned,attempt=1,same=1,resumes=0,reason=stopped
