A process leaves a call open whose child works in another process: that is recorded, once, and the call waits. A stopped
turn does not wait for a child (P16, R16, R18).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
-- facts child --
5 session.opened {"incarnation":"18","parent":"s","parent_call":"task1","root":"s"}
6 turn.started {"turn":"k1","cause":"message","synthetic":true}
-- facts --
7 session.released {}
-- owner child --
alive
-- decide @20s --
s 8 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"child"}]}
-- decide --
(none)
-- facts --
30 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"user-1"}
-- decide @31s --
s 31 tool.interrupted {"call":"task1","reason":"shutdown","outcome":"unknown"}
s 31 turn.stopped {"turn":"t1","actor":"person"}
-- state --
s idle last=t1,stopped
child running owned-by=18 turn=k1,message
