A silent turn is stopped and failed in one commit, and then retried; later facts of its harness are ignored (T18).

-- facts --
1 session.opened {"incarnation":"17","policy":{"stall_after_s":60}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
-- decide --
watch @62s
-- decide @61s --
watch @62s
-- decide @62s --
3 turn.stop_requested {"turn":"t1","actor":"stall","reason":"nothing was heard of it for 1m0s"}
3 turn.failed {"turn":"t1","error":{"kind":"stalled","text":"nothing was heard of it for 1m0s"},"had_output":false}
-- state --
idle owned-by=17 last=t1,failed,stalled stop=t1,stall retry=,attempt=0,same=1,resumes=0
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@64s","error":{"kind":"stalled","text":"nothing was heard of it for 1m0s"}}
-- facts --
5 late tool.started {"call":"c1","turn":"t1","name":"bash"}
6 late turn.completed {"turn":"t1"}
7 turn.stopped {"turn":"t1","actor":"stall"}
-- state --
retrying owned-by=17 last=t1,failed,stalled retry=scheduled,attempt=1,same=1,resumes=0,due=@64s
