A question of an earlier process, outside of any turn, is answered while a turn with a person's message runs. The answer
requests no turn. The turn fails, and its retry names the decision (P13, T13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 session.claimed {"incarnation":"18"}
4 by=harness message.accepted {"message":"m0","content":"fix the login","by":"ada"}
4 by=harness turn.started {"turn":"t1","cause":"message","message":"m0"}
-- request @5s --
answer {"prompt":"p0","answers":[],"by":"ben"}
-- result --
5 prompt.answered {"prompt":"p0","answers":[],"by":"ben","owed":true}
-- facts --
6 turn.failed {"turn":"t1","error":{"kind":"rate_limited","text":"429"}}
7 by=retry turn.requested {"turn":"r1","cause":"retry","of_turn":"t1","message":"m0","attempt":1,"prompts":["p0"]}
-- work turn --
turn: {"turn":"r1","cause":"retry","of_turn":"t1","message":"m0","content":"fix the login","attempt":1,"prompts":[{"prompt":"p0","seq":5,"status":"answered","by":"ben"}]}
