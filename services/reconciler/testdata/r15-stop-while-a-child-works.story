A new process adopts a background call of a dead one, and not its turn. A person stops the turn, which waits for a
child. No process runs the turn, so recovery stops it at once, with the call that waits; the call in the background
stays open. When the child has settled, no resume is requested (R15, P16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
4 tool.started {"call":"bg1","turn":"t1","name":"build","background":true}
-- facts child --
5 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
6 turn.started {"turn":"k1","cause":"message","synthetic":true}
-- facts --
7 session.claimed {"incarnation":"18"}
7 tool.started {"call":"bg1","turn":"t1","name":"build","background":true}
-- facts child --
10 session.claimed {"incarnation":"18"}
10 turn.started {"turn":"k1","cause":"message","synthetic":true}
-- owner --
alive
-- owner child --
alive
-- decide @60s --
(none)
-- facts --
61 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- decide @61s --
s 62 tool.interrupted {"call":"task1","reason":"owner-lost","outcome":"unknown"}
s 62 turn.stopped {"turn":"t1","actor":"person"}
-- state --
s idle owned-by=18 last=t1,stopped call=bg1
child running owned-by=18 turn=k1,message
-- facts child --
62 turn.completed {"turn":"k1"}
-- decide @71s --
(none)
-- state --
s idle owned-by=18 last=t1,stopped call=bg1
child idle owned-by=18 last=k1,completed
