A person stops a turn, another person answers its question, and the first one stops again. The process is declared dead
before it reads any of that: the turn is stopped, and no turn begins for the answer (R15, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result"}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ben"}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- owner --
dead
-- decide @60s --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 turn.stopped {"turn":"t1","actor":"person"}
-- state --
idle last=t1,stopped prompt=p1,answered
