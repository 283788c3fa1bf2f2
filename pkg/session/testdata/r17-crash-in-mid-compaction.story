A crash in mid-compaction fails the compaction with owner-lost; the held follow-up and the queue stay (R17).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 by=compaction message.accepted {"message":"m1","content":"Next","synthetic":false,"by":"ada"}
2 by=compaction compaction.requested {"compaction":"k1","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- state phase compaction pending --
phase: "compacting"
compaction: {"state":"requested","id":"k1","reason":"on-send","follow_up":"message","message":"m1","since":"@2s","used":800,"limit":1000,"epoch":1}
pending: {"compaction":{"compaction":"k1","reason":"on-send","message":"m1","at":"@2s","seq":2}}
-- work compaction --
compaction: {"compaction":"k1","reason":"on-send","message":"m1"}
-- facts --
3 compaction.started {"compaction":"k1"}
-- state phase compaction pending --
phase: "compacting"
compaction: {"state":"running","id":"k1","reason":"on-send","follow_up":"message","message":"m1","since":"@3s","used":800,"limit":1000,"epoch":1}
pending: (nothing)
-- work --
(none)
-- facts --
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 by=reconciler compaction.failed {"compaction":"k1","error":{"kind":"owner-lost","text":"the harness died"}}
-- state phase compaction last_compaction queue --
phase: "queued"
compaction: (nothing)
last_compaction: {"id":"k1","outcome":"failed","reason":"on-send","used_before":800,"used_after":0,"at":"@4s","failures":1,"seq":4,"follow_up":"message","message":"m1","error":{"kind":"owner-lost","text":"the harness died"}}
queue: [{"message":"m1","seq":2,"synthetic":false,"at":"@2s"}]
-- facts --
5 session.claimed {"incarnation":"18"}
6 epoch=1 inc=17 compaction.completed {"compaction":"k1"}
-- ignored --
6: 1, the last compaction.completed by harness: epoch
-- endings --
4 compaction k1 failed (owner-lost) late 6
