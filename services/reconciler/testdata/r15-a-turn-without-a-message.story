A turn that a process starts without a message is not a person's, also if it does not say that it is synthetic. It overtakes no decision,
and a person's stop holds (P13, R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
5 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"later"},"had_output":false}
6 turn.started {"turn":"own","cause":"message"}
7 turn.completed {"turn":"own"}
-- owner --
alive
-- decide --
8 turn.requested {"turn":"turn-cvdrsiyaxxmztzqku525","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- facts --
9 by=ledger turn.stop_requested {"turn":"own","actor":"person","by":"ada"}
10 turn.started {"turn":"own2","cause":"message"}
11 turn.completed {"turn":"own2"}
-- decide --
(none)
