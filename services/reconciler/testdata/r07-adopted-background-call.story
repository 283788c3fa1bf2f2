A new process adopts the call in the background of a dead process, and not its turn. The turn is recovered, and the call
stays open in the new process (R7, R1).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=harness message.accepted {"message":"m1","content":"build it"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 tool.started {"call":"bg","turn":"t1","name":"serve","background":true}
3 tool.started {"call":"fg","turn":"t1","name":"build"}
4 session.claimed {"incarnation":"18"}
4 tool.started {"call":"bg","turn":"t1","name":"serve","background":true}
-- owner --
alive
-- decide --
5 tool.interrupted {"call":"fg","reason":"owner-lost","outcome":"unknown"}
5 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
interrupted owned-by=18 last=t1,interrupted,owner-lost call=bg
