Policy hold for interruptions, and the limit of resumes, do not apply to failed turns (T10, R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume_max":1}}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"interrupted","text":"owner-lost"}}
-- decide @5s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"resume","of_turn":"t1","message":"m1","attempt":1}
-- facts --
6 @5s session.claimed {"incarnation":"18"}
6 turn.started {"turn":"$requested"}
7 @5s session.configured {"policy":{"resume":"hold"},"by":"ada"}
8 @5s turn.failed {"turn":"$turn","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
9 retry.scheduled {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":2,"delay_ms":4000,"due_at":"@9s","error":{"kind":"server_error","text":"x"}}
-- state --
retrying owned-by=18 last=turn-xvry7jgnky2udt6aoshg,failed,server_error retry=scheduled,attempt=2,same=1,resumes=1,due=@9s
