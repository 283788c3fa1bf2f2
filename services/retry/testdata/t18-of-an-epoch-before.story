A turn of an earlier epoch is left to recovery: silence does not fail it (T18).

-- facts --
1 session.opened {"incarnation":"17","policy":{"stall_after_s":60}}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 session.claimed {"incarnation":"18"}
-- decide @600s --
(none)
