A person stops the turn, and it has stopped. The process is gone. The person dismisses a question outside of any turn:
nothing is requested (P13, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
4 turn.stopped {"turn":"t1","actor":"person"}
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @14s --
dismiss {"prompt":"p0","by":"ada"}
-- result --
6 prompt.dismissed {"prompt":"p0","by":"ada"}
-- state --
idle last=t1,stopped prompt=p0,dismissed
-- work turn --
(none)
