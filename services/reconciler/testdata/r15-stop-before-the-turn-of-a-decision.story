A person answers a question of a process that is dead, which recovery does not know yet. Another person stops the
session. Recovery requests no turn for the answer (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 turn.completed {"turn":"t1"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
-- owner --
dead
-- decide @60s --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- state --
idle last=t1,completed prompt=p1,answered
