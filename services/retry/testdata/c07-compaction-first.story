While a compaction is wanted, or what follows one is owed, retry waits, and a person is told so (T11, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- facts --
5/compaction compaction.requested {"compaction":"k1","reason":"manual","used":1,"limit":2,"follow_up":"continue"}
-- wish --
now ada
= 409 the conversation is being compacted: the session continues afterwards [compacting: last turn failed]
-- at --
60
-- decide --
nothing
-- facts --
6 compaction.started {"compaction":"k1"}
7 compaction.completed {"compaction":"k1"}
-- decide --
nothing
-- state --
retrying last=t1,failed retry=scheduled,attempt=1,same=1,resumes=0,due=5
-- facts --
8/compaction turn.requested {"turn":"t2","cause":"follow-up","of_turn":"t1","compaction":"k1"}
9 turn.started {"turn":"@asked","synthetic":true}
10 turn.completed {"turn":"t2"}
-- decide --
nothing
-- state --
idle last=t2,completed
