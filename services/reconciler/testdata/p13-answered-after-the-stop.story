A person stops a turn, and answers a question of it before its process has stopped. The answer is the later act, and the
person has a receipt for it. When the turn has stopped, a turn is requested that continues it with the answer. An answer
from before the stop is overtaken by it: no turn starts for it automatically, and the next turn names it (R15, V9, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"before","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","questions":[{"id":"q","question":"Which?"}]}
4 prompt.requested {"prompt":"after","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","questions":[{"id":"q","question":"When?"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"before","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"user-1"}
7 by=ledger prompt.answered {"owed":true,"prompt":"after","answers":[{"question":"q","selected":[],"text":"now"}],"by":"user-1"}
-- owner --
alive
-- decide --
(none)
-- facts --
8 turn.stopped {"turn":"t1","actor":"person"}
-- decide --
9 turn.requested {"turn":"turn-lngoyu2eok5aaqfbqh5f","cause":"answer","of_turn":"t1","message":"m1","prompt":"after","prompts":["before","after"]}
-- state --
queued owned-by=17 last=t1,stopped prompt=after,answered prompt=before,answered requested=turn-lngoyu2eok5aaqfbqh5f,answer,of=t1,message=m1
-- facts --
12 turn.started {"turn":"u","cause":"answer","of_turn":"t1"}
13 by=ledger turn.stop_requested {"turn":"u","actor":"person","by":"user-1"}
14 turn.stopped {"turn":"u","actor":"person"}
-- decide --
(none)
