The limit shrinks during a turn to less than the usage: one compaction (C2, C5).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":700}}
-- decide --
(none)
-- facts --
4 usage.reported {"turn":"t1","model":"small","tokens":{"input":700},"context_limit":500}
-- decide --
5 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 140 %: it is compacted, then this continues"}
5 compaction.requested {"compaction":"compaction-efk76dholipsrhhulwuw","reason":"mid-stream","used":700,"limit":500,"follow_up":"continue"}
-- state --
compacting owned-by=17 turn=t1,message stop=t1,compaction compaction=requested,mid-stream used=700/500 warn
-- facts --
6 usage.reported {"turn":"t1","model":"small","tokens":{"input":710},"context_limit":100}
-- decide --
(none)
-- state --
compacting owned-by=17 turn=t1,message stop=t1,compaction compaction=requested,mid-stream used=710/100 warn
