A person's policy hold wins over a scheduled resume (R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"interrupted","text":"owner-lost"}}
-- facts --
5 session.configured {"policy":{"resume":"hold"},"by":"ada"}
-- decide --
6 retry.abandoned {"turn":"t1","attempt":1,"reason":"resume_held"}
-- state --
interrupted last=t1,interrupted,owner-lost retry=abandoned,attempt=1,same=0,resumes=0,resume_held
