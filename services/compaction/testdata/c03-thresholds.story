The document warns 10 points below the threshold; compaction is on-send at it and in mid-stream 5 points above (C3).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":599}}
-- state --
running owned-by=17 turn=t1,message used=599/1000
-- facts --
4 usage.reported {"turn":"t1","model":"m","tokens":{"input":600}}
-- state --
running owned-by=17 turn=t1,message used=600/1000 warn
-- facts --
5 usage.reported {"turn":"t1","model":"m","tokens":{"input":749}}
-- decide --
(none)
-- request --
check {}
-- result --
{"would":false,"reason":"disabled","used":749,"limit":1000}
-- facts --
6 turn.completed {"turn":"t1"}
-- request --
check {"used":699}
-- result --
{"would":false,"reason":"below_threshold","used":699,"limit":1000}
-- request --
check {"used":700}
-- result --
{"would":true,"reason":"on-send","used":700,"limit":1000}
