A person's message switches retrying on again, a synthetic one does not (T8).

-- facts --
1 session.opened {"incarnation":"17","policy":{"auto_retry":false}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3/compaction message.accepted {"message":"m2","content":"x","synthetic":true}
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t1","attempt":0,"reason":"disabled_by_user"}
-- state --
queued last=t1,failed retry=abandoned,attempt=0,same=1,resumes=0,reason=disabled_by_user queued=1 auto_retry=off
-- facts --
6/compaction message.accepted {"message":"m3","content":"x","synthetic":false,"by":"ada"}
-- decide --
nothing
-- state --
queued last=t1,failed retry=abandoned,attempt=0,same=1,resumes=0,reason=disabled_by_user queued=2
-- facts --
7 turn.started {"turn":"t2","cause":"message","message":"m3"}
8 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:10Z","error":{"kind":"server_error","text":"x"}}
