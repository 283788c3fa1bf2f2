An answer waits for a planned resume, which is to name it. The policy becomes hold: no turn begins in place of the
resume, and the answer waits with it for a person (P13, R14).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
5 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@6s","error":{"kind":"interrupted","text":"owner-lost"}}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
7 session.configured {"policy":{"resume":"hold"},"by":"ada"}
-- decide --
(none)
-- facts --
8 retry.abandoned {"turn":"t1","attempt":1,"reason":"resume_held"}
-- decide --
(none)
-- state --
interrupted last=t1,interrupted,owner-lost prompt=p1,answered retry=abandoned,attempt=1,same=0,resumes=0,resume_held
