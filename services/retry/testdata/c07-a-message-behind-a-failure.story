A person's message after a failure, or one that waited behind the turn, waits for the turn's retry too (C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 by=compaction message.accepted {"message":"m2","content":"b","synthetic":false,"by":"ada"}
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
5 by=compaction message.accepted {"message":"m3","content":"c","synthetic":false,"by":"ada"}
-- decide --
6 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@6s","error":{"kind":"server_error","text":"x"}}
-- state --
retrying owned-by=17 last=t1,failed,server_error queued=m2 queued=m3 retry=scheduled,attempt=1,same=1,resumes=0,due=@6s
