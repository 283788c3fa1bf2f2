A process names the prompts of the requested turn as it read them. One answer has been taken back since: the turn does
not bring it (P13, C18).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"message","on_owner_loss":"keep","blocking":false}
2 prompt.requested {"prompt":"p2","kind":"question","on_owner_loss":"keep","blocking":false}
3 session.released {}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
4 by=ledger message.accepted {"message":"answer-i5l5hakm5zrg4ksfj6ps","content":"x","synthetic":true}
5 by=ledger prompt.answered {"owed":true,"prompt":"p2","answers":[],"by":"ada"}
6 by=reconciler turn.requested {"turn":"r1","cause":"answer","prompt":"p1","prompts":["p1","p2"]}
7 message.withdrawn {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- state pending queue --
pending: {"turn":{"turn":"r1","cause":"answer","attempt":0,"prompt":"p2","prompts":[{"prompt":"p2","status":"answered","seq":5,"asked":2}],"at":"@6s","seq":6}}
queue: (nothing)
-- facts --
8 session.claimed {"incarnation":"18"}
8 turn.started {"turn":"r1","prompts":["p1","p2"]}
-- state turn --
turn: {"id":"r1","cause":"answer","synthetic":false,"prompts":[{"prompt":"p2","status":"answered","seq":5,"asked":2}],"since":"@8s","attempt":1,"epoch":2}
