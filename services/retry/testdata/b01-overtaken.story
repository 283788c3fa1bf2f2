A planned retry is abandoned when another turn followed it and was stopped by its harness: no session appears to retry
without end (T6, V14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 turn.started {"turn":"t2","cause":"follow-up","synthetic":true}
6 turn.stopped {"turn":"t2","actor":"harness"}
-- decide --
7 retry.abandoned {"turn":"t1","attempt":1,"reason":"overtaken"}
-- state --
idle owned-by=17 last=t2,stopped retry=abandoned,attempt=1,same=1,resumes=0,overtaken
