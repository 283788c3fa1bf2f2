A person stops a turn and then dismisses the question that it asked. The question is gone and the turn has stopped: a
dismissal calls for no turn (P13, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","questions":[{"id":"q","question":"Which?"}]}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 by=ledger prompt.dismissed {"prompt":"p1","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- owner --
alive
-- decide --
(none)
