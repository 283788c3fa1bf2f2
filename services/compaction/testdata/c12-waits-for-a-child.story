While the parent's turn waits for a child nothing is compacted or handed out in the parent either (C12, P20).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"task"}
4 usage.reported {"turn":"t1","model":"m","tokens":{"input":900}}
5 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"c1","child":"k"}]}
-- decide --
(none)
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
6 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- state --
waiting turn=t1,message call=c1 waits-for=c1,k queued=m1 used=900/1000 warn
-- request --
check {}
-- result --
{"would":false,"reason":"waiting","used":900,"limit":1000}
