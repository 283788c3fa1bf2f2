Missing usage, and usage far above the limit, cause no error (C1).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1"}
-- decide --
(none)
-- state --
running owned-by=17 turn=t1,message used=0/1000
-- facts --
4 usage.reported {"turn":"t1","model":"m","tokens":{"input":1000000000,"cache_read":1000000000,"cache_write":1000000000}}
-- decide --
5 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 300000000 %: it is compacted, then this continues"}
5 compaction.requested {"compaction":"compaction-efk76dholipsrhhulwuw","reason":"mid-stream","used":3000000000,"limit":1000,"follow_up":"continue"}
-- state --
compacting owned-by=17 turn=t1,message stop=t1,compaction compaction=requested,mid-stream used=3000000000/1000 warn
-- request --
check {"used":9223372036854775807,"limit":1}
-- result --
{"would":false,"reason":"running","used":9223372036854775807,"limit":1,"state":"requested"}
-- request --
check {"used":-1}
-- result --
400 used -1: want tokens, 0 or more
  {"field":"used","reason":"used -1: want tokens, 0 or more"}
-- request --
check {"limit":-5}
-- result --
400 limit -5: want tokens, 0 or more
  {"field":"limit","reason":"limit -5: want tokens, 0 or more"}
-- request --
check {"used":5,"limit":0}
-- result --
{"would":false,"reason":"running","used":5,"limit":0,"state":"requested"}
