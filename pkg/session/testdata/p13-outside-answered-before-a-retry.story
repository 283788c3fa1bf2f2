A turn with a person's message fails, and a retry is scheduled. The process dies. A question outside of any turn is
answered. The answer requests no turn: the retry names it (P13, T13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 by=harness message.accepted {"message":"m0","content":"do it"}
3 by=harness turn.started {"turn":"t1","cause":"message","message":"m0","options":{"model":"x"}}
4 turn.failed {"turn":"t1","error":{"kind":"rate_limited","text":"429"}}
5 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":60000,"due_at":"@65s"}
6 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @12s --
answer {"prompt":"p0","answers":[],"by":"ada"}
-- result --
7 prompt.answered {"prompt":"p0","answers":[],"by":"ada","owed":true}
-- work turn --
(none)
-- state retry queue last_turn --
retry: {"state":"scheduled","turn":"t1","attempt":1,"due_at":"@65s","error":{"kind":"","text":""},"same_failures":1,"resumes":0}
queue: (nothing)
last_turn: {"id":"t1","outcome":"failed","reason":"rate_limited","at":"@4s","error":{"kind":"rate_limited","text":"429"},"message":"m0","message_seq":3,"options":{"model":"x"},"cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":4}
-- facts --
19 by=retry turn.requested {"turn":"r1","cause":"retry","of_turn":"t1","message":"m0","attempt":1,"prompts":["p0"]}
20 session.claimed {"incarnation":"18"}
20 turn.started {"turn":"$requested","prompts":["p0"]}
21 turn.completed {"turn":"$turn"}
-- state --
idle owned-by=18 last=r1,completed
