A person stops a turn, then answers its question, and stops the turn that recovery requests for the answer. A resume
repeats that turn with its message (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
7 by=reconciler turn.requested {"turn":"r1","cause":"answer","of_turn":"t1","message":"m1","prompt":"p1","prompts":["p1"],"options":{"model":"big"}}
8 by=ledger turn.stop_requested {"turn":"r1","actor":"person","by":"ada"}
-- state --
idle owned-by=17 last=r1,stopped prompt=p1,answered stop=r1,person
-- request --
resume {"by":"ada"}
-- result --
9 turn.requested {"turn":"turn-h2bf6cxnyswz7i6bn2sk","cause":"answer","of_turn":"r1","message":"m1","options":{"model":"big"},"prompt":"p1","prompts":["p1"]}
