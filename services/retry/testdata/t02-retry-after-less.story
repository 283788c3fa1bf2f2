A Retry-After shorter than the delay, or a negative one, has no effect (T2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"x","retry_after_ms":500},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"rate_limit","text":"x","retry_after_ms":500}}
-- facts --
5 turn.started {"turn":"t2","cause":"message","message":"m-t2"}
6 turn.failed {"turn":"t2","error":{"kind":"rate_limit","text":"x","retry_after_ms":-9000},"had_output":false}
-- decide --
7 retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"@8s","error":{"kind":"rate_limit","text":"x","retry_after_ms":-9000}}
