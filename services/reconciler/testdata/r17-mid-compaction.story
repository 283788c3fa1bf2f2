The harness died during a compaction: the compaction fails, and its message stays in the queue (R17).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=compaction message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"user-1"}
2 by=compaction compaction.requested {"compaction":"k1","reason":"on-send","used":90,"limit":100,"follow_up":"message","message":"m1"}
3 compaction.started {"compaction":"k1"}
-- owner --
dead
-- decide @60s --
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 compaction.failed {"compaction":"k1","error":{"kind":"owner-lost","text":"the harness that compacted is gone"}}
-- state --
queued queued=m1 compacted=failed,failures=1
