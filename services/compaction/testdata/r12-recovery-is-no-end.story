What recovery says is no turn that completed: the queue does not move, no idle time begins (R12, R15).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"idle_compaction_after_s":60}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":300}}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- facts --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
nothing
-- state --
seq=5 queued last=t1,interrupted queued=m1 used=300/1000 warn=false
-- facts --
6/retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:07Z","error":{"kind":"interrupted","text":"x"}}
-- decide --
nothing
-- wish --
send {"message":"m2","content":"rather this","by":"ada"}
-- comes to --
message.accepted {"message":"m2","content":"rather this","synthetic":false,"by":"ada"}
turn.requested {"turn":"turn-t47qotpqb5tcrkygfemn","cause":"message","message":"m1"}
-- state --
seq=7 queued last=t1,interrupted queued=m1 queued=m2 pending=message,m1 used=300/1000 warn=false
