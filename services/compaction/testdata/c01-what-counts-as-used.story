Usage is the input of the last call, never its output; cached input is part of the input and is not added again (C1).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":100,"cache_read":500,"cache_write":50,"output":9000,"reasoning":900}}
-- decide --
(none)
-- state --
running owned-by=17 turn=t1,message used=650/1000 warn
-- facts --
4 usage.reported {"turn":"t1","model":"m","tokens":{"input":700,"cache_read":600,"cache_write":100,"output":5},"input_includes_cached":true}
-- decide --
(none)
-- state --
running owned-by=17 turn=t1,message used=700/1000 warn
-- facts --
5 usage.reported {"turn":"t1","model":"m","tokens":{"input":0,"cache_read":740},"input_includes_cached":true}
-- decide --
(none)
-- state --
running owned-by=17 turn=t1,message used=740/1000 warn
-- facts --
6 usage.reported {"turn":"t1","model":"m","tokens":{"input":740,"cache_write":10}}
-- decide --
7 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 75 %: it is compacted, then this continues"}
7 compaction.requested {"compaction":"compaction-wjvkpveppeycay5ki642","reason":"mid-stream","used":750,"limit":1000,"follow_up":"continue"}
-- state --
compacting owned-by=17 turn=t1,message stop=t1,compaction compaction=requested,mid-stream used=750/1000 warn
