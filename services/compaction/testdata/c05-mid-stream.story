A turn that fills the context is stopped and the compaction requested in one commit; then the turn continues with the
same options. Once a turn (C5, T11).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 by=compaction message.accepted {"message":"m0","content":"begin","synthetic":false,"by":"ada"}
3 turn.started {"turn":"t1","cause":"message","message":"m0","options":{"model":"large"}}
4 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
5 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
5 compaction.requested {"compaction":"compaction-efk76dholipsrhhulwuw","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue","message":"m0"}
-- state --
compacting owned-by=17 turn=t1,message stop=t1,compaction compaction=requested,mid-stream used=800/1000 warn
-- decide --
(none)
-- facts --
6 turn.stopped {"turn":"t1","actor":"compaction"}
-- decide --
(none)
-- state --
compacting owned-by=17 last=t1,stopped compaction=requested,mid-stream used=800/1000 warn
-- facts --
7 compaction.started {"compaction":"$compaction"}
8 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
9 turn.requested {"turn":"turn-vw2szmdgjl52ulqlfzzr","cause":"follow-up","of_turn":"t1","message":"m0","options":{"model":"large"},"compaction":"compaction-efk76dholipsrhhulwuw"}
-- state --
queued owned-by=17 last=t1,stopped requested=turn-vw2szmdgjl52ulqlfzzr,follow-up,of=t1,message=m0 compacted=completed
-- facts --
10 turn.started {"turn":"$requested","cause":"follow-up"}
11 usage.reported {"turn":"$turn","model":"m","tokens":{"input":300}}
12 usage.reported {"turn":"$turn","model":"m","tokens":{"input":760}}
-- decide --
13 turn.stop_requested {"turn":"turn-vw2szmdgjl52ulqlfzzr","actor":"compaction","reason":"the context is full to 76 %: it is compacted, then this continues"}
13 compaction.requested {"compaction":"compaction-m4xpl6fmfg4webyb4fer","reason":"mid-stream","used":760,"limit":1000,"follow_up":"continue","message":"m0"}
-- state --
compacting owned-by=17 turn=turn-vw2szmdgjl52ulqlfzzr,follow-up last=t1,stopped stop=turn-vw2szmdgjl52ulqlfzzr,compaction compaction=requested,mid-stream compacted=completed used=760/1000 warn
