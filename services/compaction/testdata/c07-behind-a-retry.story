While a retry is scheduled the queue waits behind it, and after one that was given up for a person, whose message moves it, in order (C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- decide --
nothing
-- facts --
5/retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- decide --
nothing
-- facts --
6/retry retry.abandoned {"turn":"t1","attempt":1,"reason":"no_progress"}
-- decide --
nothing
-- state --
seq=6 queued owned-by=17 last=t1,failed queued=m1 retry=abandoned,no_progress
-- wish --
send {"message":"m2","content":"go on","by":"ada"}
-- comes to --
message.accepted {"message":"m2","content":"go on","synthetic":false,"by":"ada"}
turn.requested {"turn":"turn-t47qotpqb5tcrkygfemn","cause":"message","message":"m1"}
-- state --
seq=7 queued owned-by=17 last=t1,failed queued=m1 queued=m2 pending=message,m1 retry=abandoned,no_progress
-- facts --
8 turn.started {"turn":"$turn","cause":"message"}
9 turn.completed {"turn":"$turn"}
-- decide --
turn.requested {"turn":"turn-etwoib6zf3ywxccl66t4","cause":"message","message":"m2"}
