The process is gone. A person stops the turn that waits, with force, and dismisses both questions: nothing is requested
(P13, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @12s --
stop {"by":"ada","force":true}
-- result --
5 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- request @13s --
dismiss {"prompt":"p1","by":"ada"}
-- result --
6 prompt.dismissed {"prompt":"p1","by":"ada"}
-- request @14s --
dismiss {"prompt":"p0","by":"ada"}
-- result --
7 prompt.dismissed {"prompt":"p0","by":"ada"}
-- state --
interrupted turn=t1,message prompt=p0,dismissed prompt=p1,dismissed stop=t1,person
