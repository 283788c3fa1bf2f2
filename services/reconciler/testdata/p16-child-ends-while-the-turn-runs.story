A new process adopts the turn of a dead one, by a question in it, and leaves the call that waits for a child. When the
child has settled, the call ends with the child's outcome; the owner runs the turn, and no resume replaces it (P16,
P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
4 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
-- facts child --
5 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
6 turn.started {"turn":"k1","cause":"message","synthetic":true}
-- facts --
7 session.claimed {"incarnation":"18"}
7 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
8 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"user-1"}
9 prompt.delivered {"prompt":"p1"}
-- facts child --
10 session.claimed {"incarnation":"18"}
10 turn.started {"turn":"k1","cause":"message","synthetic":true}
-- owner --
alive
-- owner child --
alive
-- decide @60s --
(none)
-- facts child --
61 turn.completed {"turn":"k1"}
-- decide @62s --
s 62 tool.completed {"call":"task1","output":{"child":"child","outcome":"completed","turn":"k1"},"synthetic":true}
-- state --
s running owned-by=18 turn=t1,message
child idle owned-by=18 last=k1,completed
