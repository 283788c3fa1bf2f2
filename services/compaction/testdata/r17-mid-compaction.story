The harness died during a compaction: the compaction is requested again, and the message is answered after it, not
summarised (R17, C6).

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
6 compaction.started {"compaction":"$compaction"}
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 by=reconciler compaction.failed {"compaction":"$compaction","error":{"kind":"owner-lost","text":"x"}}
-- decide --
look @9s
-- decide @9s --
8 compaction.requested {"compaction":"compaction-fqinzd2wrtxxbgddo2yh","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
10 session.claimed {"incarnation":"18"}
10 compaction.started {"compaction":"$compaction"}
11 compaction.completed {"compaction":"$compaction"}
-- decide --
12 turn.requested {"turn":"turn-osyazqsx7bsfmknnwmbd","cause":"follow-up","message":"m1","compaction":"compaction-fqinzd2wrtxxbgddo2yh"}
