A new incarnation adopts one call of a turn and not the turn: while the call runs, the turn stays, even if a person
stops it: the stop is for the live owner. The other call is recovered (R7, N4).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
4 tool.started {"call":"c2","turn":"t1","name":"bash"}
5 session.claimed {"incarnation":"18"}
5 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- owner --
alive
-- decide @10s --
6 tool.interrupted {"call":"c2","reason":"owner-lost","outcome":"unknown"}
-- facts --
20 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"user-1"}
-- decide @21s --
(none)
-- state --
interrupted owned-by=18 turn=t1,message call=c1 stop=t1,person
-- facts --
22 tool.completed {"call":"c1"}
-- decide @23s --
23 turn.stopped {"turn":"t1","actor":"person"}
-- state --
idle owned-by=18 last=t1,stopped
