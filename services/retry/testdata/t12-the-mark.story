The mark of an abandoned retry belongs to its turn: a newer turn does not have it (T12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"model_refusal","text":"x"},"had_output":false}
-- decide --
4 retry.abandoned {"turn":"t1","attempt":0,"reason":"model_refusal"}
-- state --
idle owned-by=17 last=t1,failed,model_refusal retry=abandoned,attempt=0,same=1,resumes=0,model_refusal
-- facts --
5 turn.started {"turn":"t2","cause":"answer"}
6 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
7 retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"@8s","error":{"kind":"server_error","text":"x"}}
-- state --
retrying owned-by=17 last=t2,failed,server_error retry=scheduled,attempt=1,same=1,resumes=0,due=@8s
