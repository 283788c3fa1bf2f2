A session has had no turn. A message waits until the conversation is compacted, and its turn is to follow. A person
stops the session: the compaction completes, and nothing follows it. The person's next message starts the first one
(R15, C6).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 usage.reported {"tokens":{"input":950}}
-- request @3s --
send {"message":"m1","content":"hello","by":"ben"}
-- result --
3 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ben"}
3 compaction.requested {"compaction":"compaction-eysm567djofp7rhdyait","reason":"on-send","used":950,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
4 compaction.started {"compaction":"$compaction"}
5 by=ledger turn.requested {"turn":"t1","cause":"message","message":"m1"}
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
6 compaction.completed {"compaction":"$compaction","used_after":10}
-- decide @7s --
(none)
-- request @9s --
send {"message":"m2","content":"go on","by":"ben"}
-- result --
7 message.accepted {"message":"m2","content":"go on","synthetic":false,"by":"ben"}
7 turn.requested {"turn":"turn-2cxvfzw3lyjboton4m6k","cause":"follow-up","message":"m1","compaction":"compaction-eysm567djofp7rhdyait"}
-- state --
queued owned-by=17 last=t1,stopped queued=m1 queued=m2 requested=turn-2cxvfzw3lyjboton4m6k,follow-up,message=m1 stop=t1,person compacted=completed
