A person's turn wins over a continuation decided before it: pending retries, resumes and answers are over (R15, §2.2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
5 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@6s","error":{"kind":"interrupted","text":"x"}}
-- state phase retry --
phase: "waiting"
retry: {"state":"scheduled","turn":"t1","attempt":1,"due_at":"@6s","error":{"kind":"interrupted","text":"x"},"same_failures":0,"resumes":0}
-- request @6s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
-- state phase pending prompts --
phase: "retrying"
pending: (nothing)
prompts: {"p1":{"kind":"question","since":"@3s","updated_at":"@6s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":6,"on_owner_loss":"keep","delivery":"callback","deadline":null}}
-- facts --
7 session.claimed {"incarnation":"18"}
7 message.accepted {"message":"m1","content":"Forget that","synthetic":false,"by":"ada"}
7 turn.started {"turn":"t5","cause":"message","message":"m1"}
-- state phase pending retry prompts queue active_at --
phase: "running"
pending: (nothing)
retry: (nothing)
prompts: (nothing)
queue: (nothing)
active_at: "@7s"
-- work --
(none)
-- endings --
4 turn t1 interrupted (owner-lost)
6 prompt p1 answered
7 message m1 delivered
-- blocker p1 status delivered_at --
status: "answered"
delivered_at: (nothing)
