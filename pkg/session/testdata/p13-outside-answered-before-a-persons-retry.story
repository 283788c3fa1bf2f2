A question of an earlier process, outside of any turn, waits. A turn with a person's message fails, and a person requests
the retry. The question is answered before that turn is taken. The retry stays, and brings the decision (P13, T13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 session.claimed {"incarnation":"18"}
4 by=harness message.accepted {"message":"m0","content":"fix the login","by":"ada"}
4 by=harness turn.started {"turn":"t1","cause":"message","message":"m0"}
5 turn.failed {"turn":"t1","error":{"kind":"auth","text":"401"}}
6 by=retry retry.abandoned {"turn":"t1","attempt":1,"reason":"auth"}
7 by=retry as=ada turn.requested {"turn":"r1","cause":"retry","of_turn":"t1","message":"m0","attempt":1}
-- work turn --
turn: {"turn":"r1","cause":"retry","of_turn":"t1","message":"m0","content":"fix the login","attempt":1}
-- request @12s --
answer {"prompt":"p0","answers":[],"by":"ben"}
-- result --
8 prompt.answered {"prompt":"p0","answers":[],"by":"ben","owed":true}
-- work turn --
turn: {"turn":"r1","cause":"retry","of_turn":"t1","message":"m0","content":"fix the login","attempt":1,"prompts":[{"prompt":"p0","seq":8,"status":"answered","by":"ben"}]}
-- facts --
20 turn.started {"turn":"$requested","prompts":["p0"]}
21 turn.completed {"turn":"$turn"}
-- state --
idle owned-by=18 last=r1,completed
-- state queue retry --
queue: (nothing)
retry: (nothing)
