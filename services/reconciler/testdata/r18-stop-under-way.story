The owner died while a stop was pending: the turn is stopped, not interrupted; its calls do not count as completed (R4,
R18).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"user-1"}
-- owner --
dead
-- decide @60s --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
5 turn.stopped {"turn":"t1","actor":"person"}
-- state --
idle last=t1,stopped
