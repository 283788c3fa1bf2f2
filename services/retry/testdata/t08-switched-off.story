Disabling automatic retry abandons a scheduled retry, also after a restart of the service; later failures are not
scheduled; enabling it by policy starts nothing (T8).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 session.configured {"policy":{"auto_retry":false},"by":"ada"}
-- decide --
6 retry.abandoned {"turn":"t1","attempt":1,"reason":"disabled_by_user"}
-- state --
idle owned-by=17 last=t1,failed,server_error retry=abandoned,attempt=1,same=1,resumes=0,disabled_by_user auto-retry=off
-- decide @60s --
(none)
-- facts --
7 turn.started {"turn":"t2","cause":"message","synthetic":true}
8 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
9 retry.abandoned {"turn":"t2","attempt":1,"reason":"disabled_by_user"}
-- state --
idle owned-by=17 last=t2,failed,server_error retry=abandoned,attempt=1,same=2,resumes=0,disabled_by_user auto-retry=off
-- facts --
10 session.configured {"policy":{"auto_retry":true},"by":"ada"}
-- decide --
(none)
-- state --
idle owned-by=17 last=t2,failed,server_error retry=abandoned,attempt=1,same=2,resumes=0,disabled_by_user
