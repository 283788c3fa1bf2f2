After a stop a person answers two questions of a process that is gone, and takes both answers back. The queue moves
while one of them stands, and waits since the stop when none does (C18, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"message","on_owner_loss":"keep","blocking":false}
3 prompt.requested {"prompt":"p2","kind":"question","delivery":"message","on_owner_loss":"keep","blocking":false}
4 turn.started {"turn":"t1","cause":"message","synthetic":true}
5 message.accepted {"message":"m1","content":"next","synthetic":true}
6 by=ledger as=ada turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
7 turn.stopped {"turn":"t1","actor":"person"}
8 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
9 by=ledger as=ada prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
9 by=ledger as=ada message.accepted {"message":"answer-i5l5hakm5zrg4ksfj6ps","content":"x","synthetic":true}
9 by=ledger as=ada turn.requested {"turn":"u9","cause":"answer","message":"answer-i5l5hakm5zrg4ksfj6ps","prompt":"p1","prompts":["p1"]}
10 by=ledger as=ada prompt.answered {"prompt":"p2","answers":[],"by":"ada","owed":true}
10 by=ledger as=ada message.accepted {"message":"answer-f7jdr3gbmweiqea2iadg","content":"x","synthetic":true}
10 by=ledger as=ada turn.requested {"turn":"u10","cause":"answer","message":"answer-f7jdr3gbmweiqea2iadg","prompt":"p2","prompts":["p2"]}
-- state held_seq stopped_seq pending --
held_seq: (nothing)
stopped_seq: 6
pending: {"turn":{"turn":"u10","cause":"answer","message":"answer-f7jdr3gbmweiqea2iadg","message_seq":10,"attempt":0,"prompt":"p2","prompts":[{"prompt":"p2","status":"answered","seq":10,"asked":3}],"by":"ada","held":6,"at":"@10s","seq":10}}
-- request --
withdraw {"message":"answer-f7jdr3gbmweiqea2iadg","by":"ada"}
-- result --
11 message.withdrawn {"message":"answer-f7jdr3gbmweiqea2iadg","by":"ada"}
11 turn.requested {"turn":"turn-z4pu5kbddf3wxrrinyn4","cause":"answer","message":"answer-i5l5hakm5zrg4ksfj6ps","prompt":"p1","prompts":["p1"]}
-- state held_seq stopped_seq pending --
held_seq: (nothing)
stopped_seq: 6
pending: {"turn":{"turn":"turn-z4pu5kbddf3wxrrinyn4","cause":"answer","message":"answer-i5l5hakm5zrg4ksfj6ps","message_seq":9,"attempt":0,"prompt":"p1","prompts":[{"prompt":"p1","status":"answered","seq":9,"asked":2}],"by":"ada","held":6,"at":"@10s","seq":11}}
-- request --
withdraw {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- result --
12 message.withdrawn {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- decide --
(none)
-- state held_seq stopped_seq pending --
held_seq: 6
stopped_seq: 6
pending: (nothing)
