Facts of recovery do not complete a turn: the queue does not move, and no idle time begins (R12, R15).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"idle_compaction_after_s":60}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":300}}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
4 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- facts --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
(none)
-- state --
queued last=t1,interrupted,owner-lost queued=m1 used=300/1000
-- facts --
6 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@7s","error":{"kind":"interrupted","text":"x"}}
-- decide --
(none)
-- request --
send {"message":"m2","content":"rather this","by":"ada"}
-- result --
7 message.accepted {"message":"m2","content":"rather this","synthetic":false,"by":"ada"}
7 turn.requested {"turn":"turn-t47qotpqb5tcrkygfemn","cause":"message","message":"m1"}
-- state --
queued last=t1,interrupted,owner-lost queued=m1 queued=m2 requested=turn-t47qotpqb5tcrkygfemn,message,message=m1 retry=,attempt=1,same=0,resumes=0 used=300/1000
