A process adopts a turn whose question was answered, and gives the receipt. Then it starts a turn by itself in place of that turn. It
has the answer: no turn is requested for it (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
5 session.claimed {"incarnation":"18"}
5 turn.started {"turn":"t1","cause":"message"}
6 prompt.delivered {"prompt":"p1"}
7 turn.started {"turn":"own","cause":"message","synthetic":true}
8 turn.completed {"turn":"own"}
-- owner --
alive
-- decide --
(none)
