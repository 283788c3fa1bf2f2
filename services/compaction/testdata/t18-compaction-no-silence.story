It is no silence while nobody has taken the compaction, while a call runs, or while a person is waited for; and who is gone is recovery's, not this rule's. What runs in the background is nothing to it (T18, T9, P20).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"stall_after_s":60}}
2 tool.started {"call":"c1","name":"index","background":true}
-- wish --
compact {"by":"ada"}
-- comes to --
compaction.requested {"compaction":"compaction-twjsel7v5jm4xf4rogsh","reason":"manual","used":0,"limit":1000}
-- at --
9000
-- decide --
nothing
-- facts --
9001 compaction.started {"compaction":"$compaction"}
9002 tool.started {"call":"c2","name":"bash"}
-- at --
90000
-- decide --
nothing
-- facts --
90001 tool.completed {"call":"c2"}
90002 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback"}
-- at --
95000
-- decide --
nothing
-- facts --
95001/ledger prompt.dismissed {"prompt":"p1","by":"ada"}
-- decide --
watch 95061
-- facts --
95060/reconciler session.orphaned {"incarnation":"17","reason":"lease-ended"}
-- at --
99000
-- decide --
nothing
-- facts --
99001 session.claimed {"incarnation":"18"}
-- at --
99900
-- decide --
nothing
-- state --
seq=99001 compacting owned-by=18 compaction=running,manual
