A process adopts one call of a turn, and its tool runs on. Another question of the turn is answered. The turn continues
when the call has ended, with the decision (P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
2 tool.started {"call":"c2","turn":"t1","name":"build"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 session.claimed {"incarnation":"18"}
4 tool.started {"call":"c2","turn":"t1","name":"build"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- owner --
alive
-- decide @60s --
(none)
-- facts --
61 tool.completed {"call":"c2","output":"built"}
-- decide @70s --
62 turn.requested {"turn":"turn-wxxwrruwkevrg5eetlxk","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- work turn --
turn: {"turn":"turn-wxxwrruwkevrg5eetlxk","cause":"answer","of_turn":"t1","attempt":1,"prompt":"p1","prompts":[{"prompt":"p1","seq":5,"status":"answered","by":"ada"}]}
