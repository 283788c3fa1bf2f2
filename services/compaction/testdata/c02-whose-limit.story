The policy's limit wins over the reported one, and the reported one over the session's (C2).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800},"context_limit":2000}
-- decide --
(none)
-- state --
running owned-by=17 turn=t1,message used=800/2000
-- facts --
4 by=ledger session.configured {"policy":{"context_limit":1000},"by":"ada"}
-- decide --
5 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
5 compaction.requested {"compaction":"compaction-efk76dholipsrhhulwuw","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- state --
compacting owned-by=17 turn=t1,message stop=t1,compaction compaction=requested,mid-stream used=800/1000 warn
