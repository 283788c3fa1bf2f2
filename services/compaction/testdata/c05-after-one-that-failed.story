After a failed compaction the turn that continued without it is not stopped for another one; later turns are (C5, C8).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
4 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- facts --
5 turn.stopped {"turn":"t1","actor":"compaction"}
5 compaction.started {"compaction":"$compaction"}
6 compaction.failed {"compaction":"$compaction","error":{"kind":"quota","text":"no"}}
-- decide --
7 turn.requested {"turn":"turn-vlvye7njnooo5fwqyloz","cause":"follow-up","of_turn":"t1","compaction":"compaction-w6yt3bpxhkrtkuzhisxv"}
-- facts --
8 turn.started {"turn":"t2","cause":"follow-up","of_turn":"t1"}
9 usage.reported {"turn":"t2","model":"m","tokens":{"input":850}}
-- decide --
(none)
-- facts --
10 turn.completed {"turn":"t2"}
11 turn.started {"turn":"t3","cause":"message"}
12 usage.reported {"turn":"t3","model":"m","tokens":{"input":860}}
-- decide --
13 turn.stop_requested {"turn":"t3","actor":"compaction","reason":"the context is full to 86 %: it is compacted, then this continues"}
13 compaction.requested {"compaction":"compaction-m4xpl6fmfg4webyb4fer","reason":"mid-stream","used":860,"limit":1000,"follow_up":"continue"}
