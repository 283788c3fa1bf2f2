No turn failed and no person stopped one: the queue moves. A person takes back an answer beside a rejection. The
waiting message begins, and its turn names the rejection (C18, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"message","on_owner_loss":"keep","blocking":false}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 by=ledger as=ada prompt.rejected {"prompt":"p2","text":"no","by":"ada","owed":true}
4 by=ledger as=ada turn.requested {"turn":"u4","cause":"answer","prompt":"p2","prompts":["p2"]}
5 by=ledger as=ada prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
5 by=ledger as=ada message.accepted {"message":"answer-i5l5hakm5zrg4ksfj6ps","content":"x","synthetic":true}
5 by=ledger as=ada turn.requested {"turn":"u5","cause":"answer","message":"answer-i5l5hakm5zrg4ksfj6ps","prompt":"p1","prompts":["p1","p2"]}
6 as=ada message.accepted {"message":"m1","content":"next","synthetic":false,"by":"ada"}
-- request --
withdraw {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- result --
7 message.withdrawn {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
7 turn.requested {"turn":"turn-t47qotpqb5tcrkygfemn","cause":"message","message":"m1","prompt":"p2","prompts":["p2"]}
-- state held_seq stopped_seq pending --
held_seq: (nothing)
stopped_seq: (nothing)
pending: {"turn":{"turn":"turn-t47qotpqb5tcrkygfemn","cause":"message","message":"m1","message_seq":6,"attempt":0,"prompt":"p2","prompts":[{"prompt":"p2","status":"rejected","seq":4,"asked":2}],"at":"@6s","seq":7}}
