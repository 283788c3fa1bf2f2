With resume hold, a person rejects a question and answers another one after a crash. The policy becomes auto, and the
person takes the answer back: the resume of the interrupted turn goes first, and names the rejection (C18, R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"message","on_owner_loss":"keep","blocking":false}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
5 by=ledger as=ada prompt.rejected {"prompt":"p2","text":"no","by":"ada","owed":true}
5 by=ledger as=ada turn.requested {"turn":"u5","cause":"answer","of_turn":"t1","message":"m1","prompt":"p2","prompts":["p2"]}
6 by=ledger as=ada prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
6 by=ledger as=ada message.accepted {"message":"answer-i5l5hakm5zrg4ksfj6ps","content":"x","synthetic":true}
6 by=ledger as=ada turn.requested {"turn":"u6","cause":"answer","of_turn":"t1","message":"answer-i5l5hakm5zrg4ksfj6ps","prompt":"p1","prompts":["p1","p2"]}
7 by=ledger as=ada session.configured {"policy":{"resume":"auto"},"by":"ada"}
-- request --
withdraw {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- result --
8 message.withdrawn {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- state held_seq stopped_seq pending --
held_seq: 4
stopped_seq: (nothing)
pending: (nothing)
