So does a turn of a person, and that turn has attempts of its own (T7, R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- facts --
5 turn.started {"turn":"t2","cause":"message","message":"m2"}
-- at --
60
-- decide --
watch 605
-- state --
running turn=t2,message last=t1,failed
-- at --

-- facts --
6 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:08Z","error":{"kind":"server_error","text":"x"}}
