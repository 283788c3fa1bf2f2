A second failure while a retry is scheduled: one retry, of the turn that failed last, one attempt more, the longer delay (T6, V7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 turn.started {"turn":"t2","cause":"follow-up","synthetic":true}
-- state --
running owned-by=17 turn=t2,follow-up last=t1,failed,server_error retry=scheduled,attempt=1,same=1,resumes=0,due=@5s
-- facts --
6 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
7 retry.scheduled {"turn":"t2","attempt":2,"delay_ms":4000,"due_at":"@10s","error":{"kind":"server_error","text":"x"}}
-- state --
retrying owned-by=17 last=t2,failed,server_error retry=scheduled,attempt=2,same=2,resumes=0,due=@10s
-- decide @9s --
look @10s
-- decide @10s --
8 turn.requested {"turn":"turn-gp3kne7gxicjnoxfvmu7","cause":"retry","of_turn":"t2","attempt":2}
-- state --
retrying owned-by=17 last=t2,failed,server_error requested=turn-gp3kne7gxicjnoxfvmu7,retry,of=t2 retry=starting,attempt=2,same=2,resumes=0
