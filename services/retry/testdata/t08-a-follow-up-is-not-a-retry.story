What follows a compaction is nobody's retry: switched off, it stays (T8, C6).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
2/compaction message.accepted {"message":"m2","content":"b","synthetic":false,"by":"ada"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- facts --
5/compaction compaction.requested {"compaction":"k1","reason":"manual","used":3,"limit":20,"follow_up":"message","message":"m2"}
6 compaction.started {"compaction":"k1"}
7 compaction.completed {"compaction":"k1"}
8/compaction turn.requested {"turn":"t3","cause":"follow-up","message":"m2","compaction":"k1"}
9 session.configured {"policy":{"auto_retry":false},"by":"ada"}
-- state --
retrying last=t1,failed asked=t3,follow-up,of= retry=scheduled,attempt=1,same=1,resumes=0,due=5 queued=1 auto_retry=off
-- decide --
nothing
