A question outside of any turn is answered, then a person stops the turn that runs, and then its process dies. The answer
came before the stop, so it waits for a person: nothing is requested (P13, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
3 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
4 turn.started {"turn":"t2","cause":"message","synthetic":true}
5 by=ledger turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t2","actor":"person"}
-- owner --
dead
-- decide @60s --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
