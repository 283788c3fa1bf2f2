A planned retry is abandoned when another turn followed it and waits, interrupted, for a person (R14, V14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 turn.started {"turn":"t2","cause":"follow-up","synthetic":true}
6 turn.interrupted {"turn":"t2","reason":"owner-lost"}
-- decide --
7 retry.abandoned {"turn":"t1","attempt":1,"reason":"overtaken"}
-- state --
interrupted owned-by=17 last=t2,interrupted,owner-lost retry=abandoned,attempt=1,same=1,resumes=0,overtaken
-- decide --
(none)
