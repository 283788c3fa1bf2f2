A second failure while a retry is scheduled: one retry, of the turn that failed last, one attempt more, the longer delay (T6, V7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- facts --
5 turn.started {"turn":"t2","cause":"follow-up","synthetic":true}
-- state --
running turn=t2,follow-up last=t1,failed retry=scheduled,attempt=1,same=1,resumes=0,due=5
-- facts --
6 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t2","attempt":2,"delay_ms":4000,"due_at":"2026-03-01T12:00:10Z","error":{"kind":"server_error","text":"x"}}
-- state --
retrying last=t2,failed retry=scheduled,attempt=2,same=2,resumes=0,due=10
-- at --
9
-- decide --
look 10
-- at --
10
-- decide --
turn.requested {"turn":"turn-gp3kne7gxicjnoxfvmu7","cause":"retry","of_turn":"t2","attempt":2}
-- state --
retrying last=t2,failed asked=turn-gp3kne7gxicjnoxfvmu7,retry,of=t2 retry=starting,attempt=2,same=2,resumes=0
