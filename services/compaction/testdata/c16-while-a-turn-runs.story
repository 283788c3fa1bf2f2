By hand while a turn runs: when that has ended. The queue comes after it (C16, C7).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":5}}
-- wish --
compact {"by":"ada"}
-- comes to --
compaction.requested {"compaction":"compaction-oumvmk52fculeetezijg","reason":"manual","used":5,"limit":1000}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- facts --
6 turn.completed {"turn":"t1"}
-- decide --
nothing
-- facts --
7 compaction.started {"compaction":"$compaction"}
8 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
turn.requested {"turn":"turn-k74ghf6qgdlzod4mweri","cause":"message","message":"m1"}
