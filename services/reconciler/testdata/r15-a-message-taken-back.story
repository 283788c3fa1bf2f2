A person answers, stops the turn, sends a message and takes it back before a turn has it. The stop still holds: the answer calls
for no turn, and the next turn of that person names it (R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
7 by=compaction as=ada message.accepted {"message":"m2","content":"hi"}
7 by=compaction as=ada turn.requested {"turn":"u","cause":"message","message":"m2","prompt":"p1","prompts":["p1"]}
8 by=compaction as=ada message.withdrawn {"message":"m2","by":"ada"}
-- owner --
alive
-- decide --
(none)
