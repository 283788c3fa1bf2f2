Every other kind is tried again, also one that nobody has heard of (T3, T17).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t0","cause":"message"}
3 turn.failed {"turn":"t0","error":{"kind":"rate_limit","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t0","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"rate_limit","text":"x"}}
-- facts --
5 turn.started {"turn":"t1","cause":"message"}
6 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:08Z","error":{"kind":"server_error","text":"x"}}
-- facts --
8 turn.started {"turn":"t2","cause":"message"}
9 turn.failed {"turn":"t2","error":{"kind":"network","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:11Z","error":{"kind":"network","text":"x"}}
-- facts --
11 turn.started {"turn":"t3","cause":"message"}
12 turn.failed {"turn":"t3","error":{"kind":"empty_output","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t3","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:14Z","error":{"kind":"empty_output","text":"x"}}
-- facts --
14 turn.started {"turn":"t4","cause":"message"}
15 turn.failed {"turn":"t4","error":{"kind":"stream_truncated","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t4","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:17Z","error":{"kind":"stream_truncated","text":"x"}}
-- facts --
17 turn.started {"turn":"t5","cause":"message"}
18 turn.failed {"turn":"t5","error":{"kind":"stalled","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t5","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:20Z","error":{"kind":"stalled","text":"x"}}
-- facts --
20 turn.started {"turn":"t6","cause":"message"}
21 turn.failed {"turn":"t6","error":{"kind":"gremlins","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t6","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:23Z","error":{"kind":"gremlins","text":"x"}}
-- state --
retrying last=t6,failed retry=scheduled,attempt=1,same=1,resumes=0,due=23
