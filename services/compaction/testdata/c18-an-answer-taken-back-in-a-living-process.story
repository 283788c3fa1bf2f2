After a stop a person rejects a question that the living process asked. That requested no turn and moved no queue. The
person takes back the answer to a question of an earlier process: the queue waits since the stop (C18, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"message","on_owner_loss":"keep","blocking":false}
3 turn.started {"turn":"t1","cause":"message","synthetic":true}
4 message.accepted {"message":"m1","content":"next","synthetic":true}
5 by=ledger as=ada turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
7 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
8 session.claimed {"incarnation":"18"}
9 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
9 prompt.unattended {"prompt":"p2"}
10 by=ledger as=ada prompt.rejected {"prompt":"p2","text":"no","by":"ada","owed":true}
11 by=ledger as=ada prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
11 by=ledger as=ada message.accepted {"message":"answer-i5l5hakm5zrg4ksfj6ps","content":"x","synthetic":true}
11 by=ledger as=ada turn.requested {"turn":"u11","cause":"answer","message":"answer-i5l5hakm5zrg4ksfj6ps","prompt":"p1","prompts":["p1","p2"]}
-- request --
withdraw {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- result --
12 message.withdrawn {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- state held_seq stopped_seq pending --
held_seq: 5
stopped_seq: 5
pending: (nothing)
