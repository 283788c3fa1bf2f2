A person dismisses a question outside of any turn, and the process is gone by then. Recovery requests no turn for a
dismissal (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 by=ledger prompt.dismissed {"prompt":"p0","by":"ada"}
-- owner --
dead
-- decide @60s --
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
