A turn that fills the context is stopped and the compaction asked for in one commit; then it goes on with the same options. Once a turn (C5, T11).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2/compaction message.accepted {"message":"m0","content":"begin","synthetic":false,"by":"ada"}
3 turn.started {"turn":"t1","cause":"message","message":"m0","options":{"model":"large"}}
4 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this goes on"}
compaction.requested {"compaction":"compaction-efk76dholipsrhhulwuw","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue","message":"m0"}
-- state --
seq=5 compacting owned-by=17 turn=t1,message stop=t1,compaction compaction=requested,mid-stream used=800/1000 warn=true
-- decide --
nothing
-- facts --
6 turn.stopped {"turn":"t1","actor":"compaction"}
-- decide --
nothing
-- state --
seq=6 compacting owned-by=17 last=t1,stopped compaction=requested,mid-stream used=800/1000 warn=true
-- facts --
7 compaction.started {"compaction":"$compaction"}
8 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
turn.requested {"turn":"turn-vw2szmdgjl52ulqlfzzr","cause":"follow-up","of_turn":"t1","message":"m0","options":{"model":"large"},"compaction":"compaction-efk76dholipsrhhulwuw"}
-- state --
seq=9 queued owned-by=17 last=t1,stopped pending=follow-up,m0 compacted=completed,0
-- facts --
10 turn.started {"turn":"$turn","cause":"follow-up"}
11 usage.reported {"turn":"$turn","model":"m","tokens":{"input":300}}
12 usage.reported {"turn":"$turn","model":"m","tokens":{"input":760}}
-- decide --
turn.stop_requested {"turn":"turn-vw2szmdgjl52ulqlfzzr","actor":"compaction","reason":"the context is full to 76 %: it is compacted, then this goes on"}
compaction.requested {"compaction":"compaction-m4xpl6fmfg4webyb4fer","reason":"mid-stream","used":760,"limit":1000,"follow_up":"continue","message":"m0"}
-- state --
seq=13 compacting owned-by=17 turn=turn-vw2szmdgjl52ulqlfzzr,follow-up last=t1,stopped stop=turn-vw2szmdgjl52ulqlfzzr,compaction compaction=requested,mid-stream compacted=completed,0 used=760/1000 warn=true
