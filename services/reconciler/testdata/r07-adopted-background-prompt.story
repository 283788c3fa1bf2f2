A new process adopts the question of a call in the background, and with it the call. The turn is recovered at once,
although the question waits: the answer goes to the call, which outlives the turn (R7, P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 tool.started {"call":"bg","turn":"t1","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"bg","kind":"question","delivery":"tool-result","blocking":false}
4 session.claimed {"incarnation":"18"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"bg","kind":"question","delivery":"tool-result","blocking":false}
-- owner --
alive
-- decide --
5 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
interrupted owned-by=18 last=t1,interrupted,owner-lost call=bg prompt=p1,awaiting
-- facts --
20 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- decide --
(none)
-- work prompts --
prompts: {"p1":{"status":"answered","by":"ada"}}
-- facts --
21 tool.completed {"call":"bg","output":"answered"}
-- decide --
(none)
-- state --
interrupted owned-by=18 last=t1,interrupted,owner-lost
