Stall detection can be disabled; a turn without an owner is left to recovery (T18).

-- facts --
1 session.opened {"incarnation":"17","policy":{"stall_after_s":0}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
-- decide @90000s --
(none)
-- facts --
3 session.configured {"policy":{"stall_after_s":60},"by":"ada"}
4 session.released {}
-- decide @900000s --
(none)
-- state --
interrupted turn=t1,message
