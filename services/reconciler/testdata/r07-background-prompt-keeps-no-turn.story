A new process adopts a call in the background, and not the question of it that waits, nor the turn. The question does
not keep the turn open. The answer is the call's: no service ends the call with it, and the next attempt of the turn
does not name it (R7, P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 tool.started {"call":"bg","turn":"t1","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"bg","kind":"question","delivery":"tool-result","blocking":false}
4 session.claimed {"incarnation":"18"}
4 tool.started {"call":"bg","turn":"t1","name":"watch","background":true}
-- owner --
alive
-- decide --
5 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- facts --
20 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- decide --
(none)
-- work prompts --
prompts: {"p1":{"status":"answered","by":"ada"}}
-- state --
interrupted owned-by=18 last=t1,interrupted,owner-lost call=bg prompt=p1,answered
