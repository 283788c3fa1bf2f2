A stop while the conversation is compacted for a message takes its handing out back: it stays in the queue and waits for a person (R15, C7).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 turn.completed {"turn":"t1"}
5 by=compaction message.accepted {"message":"m1","content":"Next","synthetic":false,"by":"ada"}
5 by=compaction compaction.requested {"compaction":"k1","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
6 compaction.started {"compaction":"k1"}
-- request @7s --
stop {"by":"ada"}
-- result --
7 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- facts --
8 turn.stopped {"turn":"t1","actor":"person"}
9 compaction.completed {"compaction":"k1"}
-- state phase queue last_turn last_compaction pending --
phase: "queued"
queue: [{"message":"m1","seq":5,"synthetic":false,"at":"@5s"}]
last_turn: {"id":"t1","outcome":"completed","at":"@4s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":4}
last_compaction: {"id":"k1","outcome":"completed","reason":"on-send","used_before":800,"used_after":0,"at":"@9s","failures":0,"seq":9,"follow_up":"message","message":"m1"}
pending: (nothing)
-- request --
stop {"by":"ada"}
-- result --
nothing to append, see 9
