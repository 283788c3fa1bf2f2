Open items of an earlier owner are left to recovery: their silence is not a stall. The process that adopts them is
responsible (T18, R2, R7).

-- facts --
1 session.opened {"incarnation":"17","policy":{"stall_after_s":60}}
2 turn.started {"turn":"t1","cause":"message"}
3 session.claimed {"incarnation":"18"}
-- decide @900s --
(none)
-- facts --
901 turn.started {"turn":"t1","cause":"message"}
-- decide --
watch @961s
-- state --
running owned-by=18 turn=t1,message
