Resumes end when there were as many as the policy allows; the phase stays interrupted, and says why (T10, V8).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume_max":1}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"interrupted","text":"owner-lost"}}
-- at --
5
-- decide --
turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"resume","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- facts --
6 session.claimed {"incarnation":"18"}
6 turn.started {"turn":"@asked"}
7 session.orphaned {"reason":"owner-lost","incarnation":"18"}
7 turn.interrupted {"turn":"@open","reason":"owner-lost"}
-- decide --
retry.abandoned {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":1,"reason":"resume_exhausted"}
-- state --
interrupted last=turn-xvry7jgnky2udt6aoshg,interrupted retry=abandoned,attempt=1,same=0,resumes=1,reason=resume_exhausted
