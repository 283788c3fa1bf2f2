A person stops a turn and then answers its question. The turn stops and has not read the answer, so that a turn is requested for it. The
Ask of the stopped turn returns, and gives the receipt. The requested turn is still needed: the turn that had the answer will not
continue (P13, R15, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- owner --
alive
-- decide --
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","message":"m1","prompt":"p1","prompts":["p1"]}
-- facts --
8 prompt.delivered {"prompt":"p1"}
-- state --
queued owned-by=17 last=t1,stopped requested=turn-shfzy35gxxwiyxqjd2da,answer,of=t1,message=m1
