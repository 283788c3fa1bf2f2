Stall detection can be switched off; a turn that nobody owns is recovery's (T18).

-- facts --
1 session.opened {"incarnation":"17","policy":{"stall_after_s":0}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
-- at --
90000
-- decide --
nothing
-- facts --
3 session.configured {"policy":{"stall_after_s":60},"by":"ada"}
4 session.released {}
-- at --
900000
-- decide --
nothing
-- state --
interrupted turn=t1,message
