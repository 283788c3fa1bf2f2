A person answers a question, stops the turn, and answers another question of a process that is gone. The next process
receives that answer, so the turn that the answer requested is not needed. The first answer waits for a resume; a
request of a service for it does not stay either (R15, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 prompt.requested {"prompt":"p3","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
8 by=ledger as=ada prompt.answered {"owed":true,"prompt":"p2","answers":[],"by":"ada"}
8 by=ledger as=ada turn.requested {"turn":"t2","cause":"answer","prompt":"p2","prompts":["p1","p2"]}
-- state --
queued last=t1,stopped prompt=p1,answered prompt=p2,answered prompt=p3,awaiting requested=t2,answer
-- facts --
9 session.claimed {"incarnation":"18"}
10 prompt.delivered {"prompt":"p2"}
-- state --
idle owned-by=18 last=t1,stopped prompt=p1,answered prompt=p3,awaiting
-- facts --
11 by=reconciler turn.requested {"turn":"t3","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
12 by=ledger prompt.answered {"owed":true,"prompt":"p3","answers":[],"by":"ada"}
13 prompt.delivered {"prompt":"p3"}
-- state --
idle owned-by=18 last=t1,stopped prompt=p1,answered
