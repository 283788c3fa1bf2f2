Disabling automatic retry takes back a retry that has fired and that no harness has taken (T8).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- decide @5s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying owned-by=17 last=t1,failed,server_error requested=turn-xvry7jgnky2udt6aoshg,retry,of=t1,message=m1 retry=starting,attempt=1,same=1,resumes=0
-- facts --
6 @5s session.configured {"policy":{"auto_retry":false},"by":"ada"}
-- decide --
7 retry.abandoned {"turn":"t1","attempt":1,"reason":"disabled_by_user"}
-- state --
idle owned-by=17 last=t1,failed,server_error retry=abandoned,attempt=1,same=1,resumes=0,disabled_by_user auto-retry=off
