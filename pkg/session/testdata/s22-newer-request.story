A newer request replaces a pending one; the same one again, and a compaction while one is open, are ignored (§2.2).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=retry turn.requested {"turn":"t1","cause":"retry"}
3 by=compaction turn.requested {"turn":"t2","cause":"follow-up"}
4 by=compaction turn.requested {"turn":"t2","cause":"resume"}
-- state pending --
pending: {"turn":{"turn":"t2","cause":"follow-up","attempt":0,"at":"@3s","seq":3}}
-- facts --
5 by=compaction compaction.requested {"compaction":"k1","reason":"manual","used":1,"limit":2}
6 by=compaction compaction.requested {"compaction":"k2","reason":"manual","used":1,"limit":2}
7 compaction.started {"compaction":"k1"}
8 by=compaction compaction.requested {"compaction":"k2","reason":"manual","used":1,"limit":2}
9 compaction.started {"compaction":"k1"}
10 compaction.started {"compaction":"k2"}
11 compaction.completed {"compaction":"k1","used_after":1}
12 compaction.completed {"compaction":"k1"}
13 compaction.failed {"compaction":"k2","error":{"kind":"x","text":"y"}}
14 compaction.started {"compaction":"k1"}
15 by=compaction compaction.requested {"compaction":"k1","reason":"manual","used":1,"limit":2}
-- ignored --
4: 1, the last turn.requested by compaction: already-open-id
6: 1, the last compaction.requested by compaction: already-open-id
8: 1, the last compaction.requested by compaction: already-open-id
9: 1, the last compaction.started by harness: already-open-id
10: 1, the last compaction.started by harness: unknown
12: 1, the last compaction.completed by harness: closed-id
13: 1, the last compaction.failed by harness: unknown
14: 1, the last compaction.started by harness: closed-id
15: 1, the last compaction.requested by compaction: closed-id
-- state compaction last_compaction --
compaction: (nothing)
last_compaction: {"id":"k1","outcome":"completed","reason":"manual","used_before":1,"used_after":1,"at":"@11s","failures":0,"seq":11,"used_least":1}
