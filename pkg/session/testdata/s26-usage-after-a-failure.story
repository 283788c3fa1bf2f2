Usage that a turn reports after its end counts while nothing came since: a compaction that failed changes nothing about it, one
that completed does (§2.6, C10).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.completed {"turn":"t1"}
4 by=compaction compaction.requested {"compaction":"k1","reason":"manual","used":3,"limit":10}
5 compaction.failed {"compaction":"k1","error":{"kind":"x","text":"y"}}
6 usage.reported {"turn":"t1","model":"m","tokens":{"input":5},"context_limit":10}
-- state usage --
usage: {"tokens":{"input":5,"cache_read":0,"cache_write":0,"output":0,"reasoning":0},"used":5,"limit":10,"percent":50,"warn":false,"at":"@6s"}
-- facts --
7 by=compaction compaction.requested {"compaction":"k2","reason":"manual","used":5,"limit":10}
8 compaction.started {"compaction":"k2"}
9 compaction.completed {"compaction":"k2"}
10 usage.reported {"turn":"t1","model":"m","tokens":{"input":6},"context_limit":10}
-- ignored --
10: 1, the last usage.reported by harness: turn-ended
-- state usage --
usage: (nothing)
