A manual compaction during a turn starts when the turn has ended. The queue follows it (C16, C7).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":5}}
-- request --
compact {"by":"ada"}
-- result --
4 compaction.requested {"compaction":"compaction-oumvmk52fculeetezijg","reason":"manual","used":5,"limit":1000}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- facts --
6 turn.completed {"turn":"t1"}
-- decide --
(none)
-- facts --
7 compaction.started {"compaction":"$compaction"}
8 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
9 turn.requested {"turn":"turn-k74ghf6qgdlzod4mweri","cause":"message","message":"m1"}
