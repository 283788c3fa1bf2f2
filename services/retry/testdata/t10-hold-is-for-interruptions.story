A policy that holds what was interrupted, or the end of its resumes, says nothing of turns that fail (T10, R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume_max":1}}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"interrupted","text":"owner-lost"}}
-- at --
5
-- decide --
turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"resume","of_turn":"t1","message":"m1","attempt":1}
-- facts --
6 session.claimed {"incarnation":"18"}
6 turn.started {"turn":"@asked"}
7 session.configured {"policy":{"resume":"hold"},"by":"ada"}
8 turn.failed {"turn":"@open","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":2,"delay_ms":4000,"due_at":"2026-03-01T12:00:09Z","error":{"kind":"server_error","text":"x"}}
-- state --
retrying last=turn-xvry7jgnky2udt6aoshg,failed retry=scheduled,attempt=2,same=1,resumes=1,due=9
