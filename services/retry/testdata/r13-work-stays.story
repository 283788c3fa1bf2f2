A requested retry that no harness has taken survives its owner, is requested once, and taken once (R13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- decide @5s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- facts --
6 @5s session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- decide @6000s --
(none)
-- state --
retrying last=t1,failed,server_error requested=turn-xvry7jgnky2udt6aoshg,retry,of=t1,message=m1 retry=starting,attempt=1,same=1,resumes=0
-- facts --
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"$requested"}
-- decide --
watch @6600s
-- state --
running owned-by=18 turn=turn-xvry7jgnky2udt6aoshg,retry last=t1,failed,server_error retry=,attempt=1,same=1,resumes=0
