A person answers a question outside of any turn, and stops the turn that runs. The process completes a turn of its own and dies before
it has read the answer. The answer is from before the stop: it calls for no turn (P13, R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
7 turn.started {"turn":"own","cause":"message","synthetic":true}
8 turn.completed {"turn":"own"}
-- owner --
dead
-- decide @100s --
9 session.orphaned {"reason":"owner-lost","incarnation":"17"}
