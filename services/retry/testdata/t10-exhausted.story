Resumes end at the number that the policy allows; the phase stays interrupted, with the reason (T10, V8).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume_max":1}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"interrupted","text":"owner-lost"}}
-- decide @5s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"resume","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- facts --
6 @5s session.claimed {"incarnation":"18"}
6 turn.started {"turn":"$requested"}
7 @5s session.orphaned {"reason":"owner-lost","incarnation":"18"}
7 turn.interrupted {"turn":"$turn","reason":"owner-lost"}
-- decide --
8 retry.abandoned {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":1,"reason":"resume_exhausted"}
-- state --
interrupted last=turn-xvry7jgnky2udt6aoshg,interrupted,owner-lost retry=abandoned,attempt=1,same=0,resumes=1,resume_exhausted
