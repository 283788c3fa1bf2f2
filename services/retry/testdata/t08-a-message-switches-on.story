A person's message enables automatic retry again, a synthetic one does not (T8).

-- facts --
1 session.opened {"incarnation":"17","policy":{"auto_retry":false}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 by=compaction message.accepted {"message":"m2","content":"x","synthetic":true}
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
5 retry.abandoned {"turn":"t1","attempt":0,"reason":"disabled_by_user"}
-- state --
queued owned-by=17 last=t1,failed,server_error queued=m2 retry=abandoned,attempt=0,same=1,resumes=0,disabled_by_user auto-retry=off
-- facts --
6 by=compaction message.accepted {"message":"m3","content":"x","synthetic":false,"by":"ada"}
-- decide --
(none)
-- state --
queued owned-by=17 last=t1,failed,server_error queued=m2 queued=m3 retry=abandoned,attempt=0,same=1,resumes=0,disabled_by_user
-- facts --
7 turn.started {"turn":"t2","cause":"message","message":"m3"}
8 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
9 retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"@10s","error":{"kind":"server_error","text":"x"}}
