The limit is unknown: nothing is compacted, and nothing fails (C2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":900000},"context_limit":-5}
-- decide --
(none)
-- facts --
4 turn.completed {"turn":"t1"}
-- request --
check {}
-- result --
{"would":false,"reason":"disabled","used":900000,"limit":0}
-- request --
check {"used":900000}
-- result --
{"would":false,"reason":"no_limit","used":900000,"limit":0}
-- request --
send {"message":"m1","content":"hi","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hi","synthetic":false,"by":"ada"}
5 turn.requested {"turn":"turn-urfx73yfbrfbvted7naj","cause":"message","message":"m1"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-urfx73yfbrfbvted7naj,message,message=m1 used=900000/0
