A provider's Retry-After counts up to 15 minutes (T2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"x","retry_after_ms":1e300},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":900000,"due_at":"@903s","error":{"kind":"rate_limit","text":"x","retry_after_ms":9007199254740992}}
