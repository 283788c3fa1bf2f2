The message that a compaction precedes is withdrawn: the compaction continues, and only the queue follows it (C18, C6).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 turn.completed {"turn":"t1"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
5 compaction.requested {"compaction":"compaction-f5itfyrli7px626f7uqs","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- request --
send {"message":"m2","content":"and then","by":"ada"}
-- result --
6 message.accepted {"message":"m2","content":"and then","synthetic":false,"by":"ada"}
-- request --
withdraw {"message":"m1","by":"ada"}
-- result --
7 message.withdrawn {"message":"m1","by":"ada"}
-- facts --
8 compaction.started {"compaction":"$compaction"}
9 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
10 turn.requested {"turn":"turn-etwoib6zf3ywxccl66t4","cause":"message","message":"m2"}
