A compaction that was requested and not taken stays for the next incarnation (R13, R17).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=compaction compaction.requested {"compaction":"k1","reason":"manual","used":90,"limit":100}
-- owner --
dead
-- decide @60s --
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- state --
compacting compaction=requested,manual
