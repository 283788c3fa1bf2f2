The follow-up of an abandoned compaction that does not fit without it is shown as held with the reason; more room
releases it (§2.6).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":1100}}
4 turn.completed {"turn":"t1"}
5 by=compaction message.accepted {"message":"m1","content":"Next","synthetic":false,"by":"ada"}
5 by=compaction compaction.requested {"compaction":"k1","reason":"on-send","used":1100,"limit":1000,"follow_up":"message","message":"m1"}
6 compaction.started {"compaction":"k1"}
7 compaction.failed {"compaction":"k1","error":{"kind":"model_not_found","text":"no such model"}}
-- state phase compaction --
phase: "queued"
compaction: {"state":"held","id":"k1","reason":"on-send","follow_up":"message","message":"m1","since":"@7s","used":1100,"limit":1000,"epoch":1,"error":{"kind":"model_not_found","text":"no such model"}}
-- facts --
8 by=ledger session.configured {"policy":{"context_limit":2000},"by":"ada"}
-- state phase compaction --
phase: "queued"
compaction: (nothing)
-- facts --
9 by=ledger session.configured {"policy":{"context_limit":null},"by":"ada"}
-- state compaction --
compaction: {"state":"held","id":"k1","reason":"on-send","follow_up":"message","message":"m1","since":"@7s","used":1100,"limit":1000,"epoch":1,"error":{"kind":"model_not_found","text":"no such model"}}
-- facts --
10 by=compaction message.withdrawn {"message":"m1","by":"ada"}
-- state phase compaction --
phase: "idle"
compaction: (nothing)
