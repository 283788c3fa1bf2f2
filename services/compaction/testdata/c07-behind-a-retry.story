While a retry is scheduled the queue waits for it. After an abandoned retry it waits for a person, whose message moves
it, in order (C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
4 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- decide --
(none)
-- facts --
5 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- decide --
(none)
-- facts --
6 by=retry retry.abandoned {"turn":"t1","attempt":1,"reason":"no_progress"}
-- decide --
(none)
-- state --
queued owned-by=17 last=t1,failed,server_error queued=m1 retry=abandoned,attempt=1,same=1,resumes=0,no_progress
-- request --
send {"message":"m2","content":"go on","by":"ada"}
-- result --
7 message.accepted {"message":"m2","content":"go on","synthetic":false,"by":"ada"}
7 turn.requested {"turn":"turn-t47qotpqb5tcrkygfemn","cause":"message","message":"m1"}
-- state --
queued owned-by=17 last=t1,failed,server_error queued=m1 queued=m2 requested=turn-t47qotpqb5tcrkygfemn,message,message=m1 retry=abandoned,attempt=1,same=1,resumes=0,no_progress
-- facts --
8 turn.started {"turn":"$requested","cause":"message"}
9 turn.completed {"turn":"$turn"}
-- decide --
10 turn.requested {"turn":"turn-etwoib6zf3ywxccl66t4","cause":"message","message":"m2"}
