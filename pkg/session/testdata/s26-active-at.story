active_at moves with a person's message, answer or turn only (§2.6).

-- facts --
1 session.opened {"incarnation":"17"}
2 @11s turn.started {"turn":"t1","cause":"message","synthetic":true}
3 @12s prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback"}
4 @13s by=compaction message.accepted {"message":"m1","content":"x","synthetic":true}
5 @14s turn.completed {"turn":"t1"}
-- state active_at --
active_at: "@1s"
-- facts --
6 @15s by=compaction message.accepted {"message":"m2","content":"x","synthetic":false}
-- state active_at --
active_at: "@15s"
-- facts --
7 @16s turn.started {"turn":"t2","cause":"follow-up","message":"m2"}
-- state active_at --
active_at: "@16s"
-- facts --
8 @17s prompt.requested {"prompt":"p2","turn":"t2","kind":"question","delivery":"callback"}
9 @18s by=ledger prompt.answered {"prompt":"p2","answers":[],"by":"ada"}
-- state active_at --
active_at: "@18s"
