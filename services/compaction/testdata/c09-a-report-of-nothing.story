A harness reports zero usage at the beginning of each call. The least real report since the compaction counts, so there
is progress, and the conversation is compacted again (C9, C1).

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
-- facts --
6 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
7 turn.requested {"turn":"turn-yqsokfzzhpsnmhtyoal2","cause":"follow-up","message":"m1","compaction":"compaction-f5itfyrli7px626f7uqs"}
-- facts --
8 turn.started {"turn":"$requested","cause":"follow-up"}
9 usage.reported {"turn":"$turn","tokens":{"output":1}}
10 usage.reported {"turn":"$turn","tokens":{"input":300}}
11 usage.reported {"turn":"$turn","tokens":{"output":1}}
12 usage.reported {"turn":"$turn","tokens":{"input":720}}
13 turn.completed {"turn":"$turn"}
-- request --
send {"message":"m2","content":"and then","by":"ada"}
-- result --
14 message.accepted {"message":"m2","content":"and then","synthetic":false,"by":"ada"}
14 compaction.requested {"compaction":"compaction-ycrvgbonbnpxjjiom25s","reason":"on-send","used":720,"limit":1000,"follow_up":"message","message":"m2"}
