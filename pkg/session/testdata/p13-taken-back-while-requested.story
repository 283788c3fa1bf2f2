An answer waits in the queue as a message, and recovery has requested a turn for it. A person takes the message back
before a process takes the turn. The request goes, too, because the turn would bring nothing. The question
waits again (P13, C18).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"message","on_owner_loss":"keep","blocking":false}
3 session.released {}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
4 by=ledger message.accepted {"message":"answer-i5l5hakm5zrg4ksfj6ps","content":"x","synthetic":true}
5 by=reconciler turn.requested {"turn":"r1","cause":"answer","prompt":"p1","prompts":["p1"]}
-- state prompts pending queue --
prompts: {"p1":{"kind":"question","since":"@2s","updated_at":"@4s","status":"answered","epoch":1,"blocking":false,"seq":2,"settled_seq":4,"on_owner_loss":"keep","delivery":"message","deadline":null}}
pending: {"turn":{"turn":"r1","cause":"answer","attempt":0,"prompt":"p1","at":"@5s","seq":5}}
queue: [{"message":"answer-i5l5hakm5zrg4ksfj6ps","seq":4,"synthetic":true,"at":"@4s"}]
-- facts --
6 message.withdrawn {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- state prompts pending queue --
prompts: {"p1":{"kind":"question","since":"@2s","updated_at":"@6s","status":"awaiting","epoch":1,"blocking":false,"seq":2,"settled_seq":0,"on_owner_loss":"keep","delivery":"message","deadline":null,"reopened_seq":6}}
pending: (nothing)
queue: (nothing)
