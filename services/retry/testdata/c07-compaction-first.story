While a compaction is requested, or its follow-up is pending, retry waits, and the reply to a person says so (T11, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 by=compaction compaction.requested {"compaction":"k1","reason":"manual","used":1,"limit":2,"follow_up":"continue"}
-- request --
now {"by":"ada"}
-- result --
409 the conversation is being compacted: the session continues afterwards
  {"status":"compacting","reason":"last turn failed","at":"@3s","seq":3}
-- decide @60s --
(none)
-- facts --
6 compaction.started {"compaction":"k1"}
7 compaction.completed {"compaction":"k1"}
-- decide --
(none)
-- state --
retrying owned-by=17 last=t1,failed,server_error compacted=completed retry=scheduled,attempt=1,same=1,resumes=0,due=@5s
-- facts --
8 by=compaction turn.requested {"turn":"t2","cause":"follow-up","of_turn":"t1","compaction":"k1"}
9 turn.started {"turn":"$requested","synthetic":true}
10 turn.completed {"turn":"t2"}
-- decide --
(none)
-- state --
idle owned-by=17 last=t2,completed compacted=completed
