Usage that is missing, or more than fits by far, fails nothing (C1).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1"}
-- decide --
nothing
-- state --
seq=3 running owned-by=17 turn=t1,message used=0/1000 warn=false
-- facts --
4 usage.reported {"turn":"t1","model":"m","tokens":{"input":1000000000,"cache_read":1000000000,"cache_write":1000000000}}
-- decide --
turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 300000000 %: it is compacted, then this goes on"}
compaction.requested {"compaction":"compaction-efk76dholipsrhhulwuw","reason":"mid-stream","used":3000000000,"limit":1000,"follow_up":"continue"}
-- state --
seq=5 compacting owned-by=17 turn=t1,message stop=t1,compaction compaction=requested,mid-stream used=3000000000/1000 warn=true
-- wish --
check {"used":9223372036854775807,"limit":1}
-- comes to --
{"would":false,"reason":"running","used":9223372036854775807,"limit":1,"state":"requested"}
-- wish --
check {"used":-1}
-- comes to --
400 used -1: want tokens, 0 or more
-- wish --
check {"limit":-5}
-- comes to --
400 limit -5: want tokens, 0 or more
-- wish --
check {"used":5,"limit":0}
-- comes to --
{"would":false,"reason":"running","used":5,"limit":0,"state":"requested"}
