A new process adopts a call in the background of a turn that waits for a person, and not the turn. The answer continues
the turn (P13, R7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 tool.started {"call":"bg","turn":"t1","name":"serve","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 session.claimed {"incarnation":"18"}
4 tool.started {"call":"bg","turn":"t1","name":"serve","background":true}
-- owner --
alive
-- decide --
(none)
-- facts --
10 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- decide --
11 turn.requested {"turn":"turn-wzdotn6ixjmb7bewqkj5","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=18 turn=t1,message call=bg prompt=p1,answered requested=turn-wzdotn6ixjmb7bewqkj5,answer,of=t1
-- work turn --
turn: {"turn":"turn-wzdotn6ixjmb7bewqkj5","cause":"answer","of_turn":"t1","attempt":1,"prompt":"p1","prompts":[{"prompt":"p1","seq":10,"status":"answered","by":"ada"}]}
