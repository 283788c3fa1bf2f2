A follow-up of a compaction is not a retry: it stays when automatic retry is disabled (T8, C6).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 by=compaction message.accepted {"message":"m2","content":"b","synthetic":false,"by":"ada"}
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
5 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@6s","error":{"kind":"server_error","text":"x"}}
-- facts --
6 by=compaction compaction.requested {"compaction":"k1","reason":"manual","used":3,"limit":20,"follow_up":"message","message":"m2"}
7 compaction.started {"compaction":"k1"}
8 compaction.completed {"compaction":"k1"}
9 by=compaction turn.requested {"turn":"t3","cause":"follow-up","message":"m2","compaction":"k1"}
10 session.configured {"policy":{"auto_retry":false},"by":"ada"}
-- state --
retrying owned-by=17 last=t1,failed,server_error queued=m2 requested=t3,follow-up,message=m2 compacted=completed retry=scheduled,attempt=1,same=1,resumes=0,due=@6s auto-retry=off
-- decide --
(none)
