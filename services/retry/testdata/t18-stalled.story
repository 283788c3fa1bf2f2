A turn that nothing is heard of is stopped and failed in one commit, and then tried again; what its harness still says of it is ignored (T18).

-- facts --
1 session.opened {"incarnation":"17","policy":{"stall_after_s":60}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
-- decide --
watch 62
-- at --
61
-- decide --
watch 62
-- at --
62
-- decide --
turn.stop_requested {"turn":"t1","actor":"stall","reason":"nothing was heard of it for 1m0s"}
turn.failed {"turn":"t1","error":{"kind":"stalled","text":"nothing was heard of it for 1m0s"},"had_output":false}
-- state --
idle last=t1,failed stop=t1,stall retry=,attempt=0,same=1,resumes=0
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:01:04Z","error":{"kind":"stalled","text":"nothing was heard of it for 1m0s"}}
-- facts --
late 5 tool.started {"call":"c1","turn":"t1","name":"bash"}
late 6 turn.completed {"turn":"t1"}
7 turn.stopped {"turn":"t1","actor":"stall"}
-- state --
retrying last=t1,failed retry=scheduled,attempt=1,same=1,resumes=0,due=64
