A person stops a turn, and then answers a question that a call in the background asked. The turn stops. The call waits
for the answer in the living process: no turn is requested for it. The process dies, and one is requested (P13, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 tool.started {"call":"c1","turn":"t1","name":"ask","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- owner --
alive
-- decide @20s --
(none)
-- owner --
dead
-- decide @60s --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
queued last=t1,stopped prompt=p1,answered requested=turn-shfzy35gxxwiyxqjd2da,answer,of=t1
