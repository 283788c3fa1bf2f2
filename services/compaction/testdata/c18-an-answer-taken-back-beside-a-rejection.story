After a stop a person rejects one question and answers another one, both of a process that is gone. Each of the two
moves the queue. When the person takes the answer back, the rejection stands: its turn is requested, and the queue
moves (C18, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"message","on_owner_loss":"keep","blocking":false}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 turn.started {"turn":"t1","cause":"message","synthetic":true}
4 message.accepted {"message":"m1","content":"next","synthetic":true}
5 by=ledger as=ada turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
7 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
8 by=ledger as=ada prompt.rejected {"prompt":"p2","text":"no","by":"ada","owed":true}
8 by=ledger as=ada turn.requested {"turn":"t2","cause":"answer","prompt":"p2","prompts":["p2"]}
9 by=ledger as=ada prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
9 by=ledger as=ada message.accepted {"message":"answer-i5l5hakm5zrg4ksfj6ps","content":"x","synthetic":true}
9 by=ledger as=ada turn.requested {"turn":"t3","cause":"answer","message":"answer-i5l5hakm5zrg4ksfj6ps","prompt":"p1","prompts":["p1","p2"]}
-- state held_seq stopped_seq pending --
held_seq: (nothing)
stopped_seq: 5
pending: {"turn":{"turn":"t3","cause":"answer","message":"answer-i5l5hakm5zrg4ksfj6ps","message_seq":9,"attempt":0,"prompt":"p1","prompts":[{"prompt":"p1","status":"answered","seq":9,"asked":2},{"prompt":"p2","status":"rejected","seq":8,"asked":2}],"by":"ada","held":5,"at":"@9s","seq":9}}
-- request --
withdraw {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- result --
10 message.withdrawn {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
10 turn.requested {"turn":"turn-g6ywmfuoemiyhoqmib6z","cause":"answer","prompt":"p2","prompts":["p2"]}
-- state held_seq stopped_seq pending --
held_seq: (nothing)
stopped_seq: 5
pending: {"turn":{"turn":"turn-g6ywmfuoemiyhoqmib6z","cause":"answer","attempt":0,"prompt":"p2","prompts":[{"prompt":"p2","status":"rejected","seq":8,"asked":2}],"by":"ada","held":5,"at":"@9s","seq":10}}
