A compaction does not stall while no harness has taken it, while a call runs, or while a person is waited for; a dead
owner is left to recovery. Background work does not count (T18, T9, P20).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"stall_after_s":60}}
2 tool.started {"call":"c1","name":"index","background":true}
-- request --
compact {"by":"ada"}
-- result --
3 compaction.requested {"compaction":"compaction-twjsel7v5jm4xf4rogsh","reason":"manual","used":0,"limit":1000}
-- decide @9000s --
(none)
-- facts --
9001 compaction.started {"compaction":"$compaction"}
9002 tool.started {"call":"c2","name":"bash"}
-- decide @90000s --
(none)
-- facts --
90001 tool.completed {"call":"c2"}
90002 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback"}
-- decide @95000s --
(none)
-- facts --
95001 by=ledger prompt.dismissed {"prompt":"p1","by":"ada"}
-- decide --
watch @95061s
-- facts --
95060 by=reconciler session.orphaned {"incarnation":"17","reason":"lease-ended"}
-- decide @99000s --
(none)
-- facts --
99001 session.claimed {"incarnation":"18"}
-- decide @99900s --
(none)
-- state --
compacting owned-by=18 call=c1 prompt=p1,dismissed compaction=running,manual
