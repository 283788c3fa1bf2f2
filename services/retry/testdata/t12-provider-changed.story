A change at the provider removes the mark of failures that it solves, and starts nothing (T12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"},"had_output":false}
-- decide --
4 retry.abandoned {"turn":"t1","attempt":0,"reason":"authentication"}
-- facts --
5 session.configured {"policy":null,"provider_changed":true,"by":"ada"}
-- decide @60s --
(none)
-- state --
idle owned-by=17 last=t1,failed,authentication retry=,attempt=0,same=1,resumes=0
-- request --
now {"by":"ada"}
-- result --
6 turn.requested {"turn":"turn-r77gicn6mam3j5knuf7y","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying owned-by=17 last=t1,failed,authentication requested=turn-r77gicn6mam3j5knuf7y,retry,of=t1,message=m1 retry=starting,attempt=1,same=0,resumes=0
