A process completes its turn and has not read the answer that was stored just before. A turn is requested for it. Then its Ask returns
the answer, and gives the receipt: the requested turn is not needed any more, and is taken back (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
5 turn.completed {"turn":"t1"}
-- owner --
alive
-- decide --
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=17 last=t1,completed prompt=p1,answered requested=turn-z3ao44pwarq65qsh3etl,answer,of=t1
-- facts --
7 prompt.delivered {"prompt":"p1"}
-- state --
idle owned-by=17 last=t1,completed
-- decide --
(none)
