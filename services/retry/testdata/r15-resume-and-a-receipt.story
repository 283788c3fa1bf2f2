A person resumes a stopped session for a decision from before the stop. The harness then receives the decision about
another question. The requested turn stays: no turn has had the first decision (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- request --
resume {"by":"ada"}
-- result --
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","message":"m1","prompt":"p1","prompts":["p1"]}
-- facts --
8 by=ledger prompt.answered {"owed":true,"prompt":"p2","answers":[],"by":"ada"}
9 prompt.delivered {"prompt":"p2"}
-- state --
queued owned-by=17 last=t1,stopped prompt=p1,answered requested=turn-shfzy35gxxwiyxqjd2da,answer,of=t1,message=m1
