A new process adopts a call in the background of a turn that waits for a person. A stop of the turn is carried out by
recovery, because no process runs the turn; the call stays open (R18, R7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"bg","turn":"t1","name":"serve","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message"}
4 session.claimed {"incarnation":"18"}
4 tool.started {"call":"bg","turn":"t1","name":"serve","background":true}
-- owner --
alive
-- decide --
(none)
-- facts --
10 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- decide --
11 turn.stopped {"turn":"t1","actor":"person"}
-- state --
idle owned-by=18 last=t1,stopped call=bg
