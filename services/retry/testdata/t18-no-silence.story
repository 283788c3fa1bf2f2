A tool that runs for ten minutes is not silence, and neither is a waiting prompt or a compaction; background work does
not count (T18, P20, N2).

-- facts --
1 session.opened {"incarnation":"17","policy":{"stall_after_s":60}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- decide @900s --
(none)
-- facts --
4 tool.completed {"call":"c1"}
5 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback"}
-- decide @9000s --
(none)
-- facts --
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
7 by=compaction compaction.requested {"compaction":"k1","reason":"mid-stream","used":1,"limit":2,"follow_up":"continue"}
8 compaction.started {"compaction":"k1"}
-- decide @90000s --
(none)
-- facts --
9 compaction.completed {"compaction":"k1"}
10 tool.started {"call":"c2","turn":"t1","name":"server","background":true}
-- decide --
watch @90060s
-- decide @90060s --
11 turn.stop_requested {"turn":"t1","actor":"stall","reason":"nothing was heard of it for 1m0s"}
11 turn.failed {"turn":"t1","error":{"kind":"stalled","text":"nothing was heard of it for 1m0s"},"had_output":false}
-- state --
idle owned-by=17 last=t1,failed,stalled call=c2 prompt=p1,answered stop=t1,stall compacted=completed retry=,attempt=0,same=1,resumes=0
