A scheduled retry is abandoned when another turn fails for good; the attempts made so far are kept (T5).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 turn.started {"turn":"t2","cause":"follow-up","synthetic":true}
6 turn.failed {"turn":"t2","error":{"kind":"authentication","text":"x"},"had_output":false}
-- decide --
7 retry.abandoned {"turn":"t2","attempt":1,"reason":"authentication"}
-- state --
idle owned-by=17 last=t2,failed,authentication retry=abandoned,attempt=1,same=1,resumes=0,authentication
