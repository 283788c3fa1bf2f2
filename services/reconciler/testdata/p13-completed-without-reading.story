An answer is stored, and the process that asked completes its turn without having read it. The decision is not lost: the turn's
completion is no receipt, so recovery requests a turn that names it. The message of the completed turn is not handed out
again. A decision with a receipt calls for nothing (P12, P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"When?"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"p2","answers":[{"question":"q","selected":[],"text":"now"}],"by":"user-1"}
6 prompt.delivered {"prompt":"p2"}
7 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
-- owner --
alive
-- decide --
(none)
-- facts --
8 turn.completed {"turn":"t1"}
-- decide --
9 turn.requested {"turn":"turn-tqfnrkzi2r5zemjof75r","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=17 last=t1,completed prompt=p1,answered requested=turn-tqfnrkzi2r5zemjof75r,answer,of=t1
-- decide --
(none)
-- facts --
12 turn.started {"turn":"u","cause":"answer","prompts":["p1"]}
13 turn.completed {"turn":"u"}
-- decide --
(none)
