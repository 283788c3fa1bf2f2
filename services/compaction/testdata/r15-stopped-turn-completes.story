A turn completes before its process reads a person's stop. The queued message does not start (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 message.accepted {"message":"m1","content":"next"}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
5 turn.completed {"turn":"t1"}
-- decide @6s --
(none)
-- facts --
7 turn.stopped {"turn":"t1","actor":"person"}
-- decide @8s --
(none)
-- request @9s --
send {"message":"m2","content":"go on","by":"ben"}
-- result --
8 message.accepted {"message":"m2","content":"go on","synthetic":false,"by":"ben"}
8 turn.requested {"turn":"turn-envaklxki4w26revfpaq","cause":"message","message":"m1"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 queued=m2 requested=turn-envaklxki4w26revfpaq,message,message=m1
