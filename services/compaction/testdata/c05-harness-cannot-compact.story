The harness has no code that compacts: it fails each compaction as runtime_not_ready, which is final. The turn continues,
and later turns are not stopped for a compaction that would fail, too. Each message tries again, so a harness that has
learned to compact is found, and then turns are stopped as before (C5, C8).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
4 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- facts --
5 turn.stopped {"turn":"t1","actor":"compaction"}
6 compaction.started {"compaction":"$compaction"}
6 compaction.failed {"compaction":"$compaction","error":{"kind":"runtime_not_ready","text":"no"}}
-- decide --
7 turn.requested {"turn":"turn-vlvye7njnooo5fwqyloz","cause":"follow-up","of_turn":"t1","compaction":"compaction-w6yt3bpxhkrtkuzhisxv"}
-- facts --
8 turn.started {"turn":"$requested","cause":"follow-up","of_turn":"t1"}
9 turn.completed {"turn":"$turn"}
10 turn.started {"turn":"t3","cause":"message"}
11 usage.reported {"turn":"t3","model":"m","tokens":{"input":850}}
-- decide --
(none)
-- request --
check {}
-- result --
{"would":false,"reason":"suppressed","used":850,"limit":1000}
-- facts --
12 turn.completed {"turn":"t3"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
13 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
13 compaction.requested {"compaction":"compaction-omlg42vzy6oxlicggyo6","reason":"on-send","used":850,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
14 compaction.started {"compaction":"$compaction"}
15 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
16 turn.requested {"turn":"turn-shgrjz3cqrccjrl6t2qd","cause":"follow-up","message":"m1","compaction":"compaction-omlg42vzy6oxlicggyo6"}
-- facts --
17 turn.started {"turn":"$requested","cause":"follow-up"}
18 usage.reported {"turn":"$turn","model":"m","tokens":{"input":150}}
18 usage.reported {"turn":"$turn","model":"m","tokens":{"input":800}}
-- decide --
19 turn.stop_requested {"turn":"turn-shgrjz3cqrccjrl6t2qd","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
19 compaction.requested {"compaction":"compaction-66s7eenbkpn3tmjbc4ec","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue","message":"m1"}
-- state --
compacting owned-by=17 turn=turn-shgrjz3cqrccjrl6t2qd,follow-up last=t3,completed stop=turn-shgrjz3cqrccjrl6t2qd,compaction compaction=requested,mid-stream compacted=completed used=800/1000 warn
