A closed session is left alone (T10, R10).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
4 by=ledger session.closed {"reason":"archived","by":"ada"}
-- decide @60s --
(none)
-- state --
closed last=t1,interrupted,owner-lost
