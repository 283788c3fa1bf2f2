A person answers and then stops the turn. The process starts a turn by itself and completes it, and later it dies. The answer is from
before the stop: it calls for no turn, neither while that process lives nor after its death. The next turn of that person names it
(P13, R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
5 prompt.delivered {"prompt":"p1"}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
7 turn.stopped {"turn":"t1","actor":"person"}
8 turn.started {"turn":"own","cause":"message","synthetic":true}
9 turn.completed {"turn":"own"}
-- owner --
alive
-- decide --
(none)
-- owner --
dead
-- decide --
10 session.orphaned {"reason":"owner-lost","incarnation":"17"}
