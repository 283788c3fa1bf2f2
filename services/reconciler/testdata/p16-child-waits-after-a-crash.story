A sub-agent was interrupted once, was adopted by the next process together with its parent, and asks a person when that
process dies, too. Its parent waits for it: the interruption is of an older turn (P16).

-- facts --
1 session.opened {"incarnation":"16"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
-- facts child --
4 session.opened {"incarnation":"16","parent":"s","parent_call":"task1","root":"s"}
5 turn.started {"turn":"k1","cause":"message","synthetic":true}
6 session.orphaned {"reason":"owner-lost","incarnation":"16"}
7 turn.interrupted {"turn":"k1","reason":"owner-lost"}
8 session.claimed {"incarnation":"17"}
9 turn.started {"turn":"k2","cause":"resume","of_turn":"k1"}
10 tool.started {"call":"ask","turn":"k2","name":"question"}
11 prompt.requested {"prompt":"q1","turn":"k2","kind":"question","delivery":"tool-result","call":"ask","questions":[{"id":"a","question":"Which?","custom":true}]}
-- facts --
12 session.claimed {"incarnation":"17"}
13 tool.started {"call":"task1","turn":"t1","name":"task"}
14 turn.started {"turn":"t1","cause":"message"}
-- owner --
dead
-- owner child --
dead
-- decide @60s --
child 15 session.orphaned {"reason":"owner-lost","incarnation":"17"}
s 16 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"child"}]}
-- state --
s waiting turn=t1,message call=task1 waits-for=task1,child
child waiting turn=k2,resume last=k1,interrupted,owner-lost call=ask prompt=q1,awaiting
-- facts child --
70 by=ledger prompt.answered {"owed":true,"prompt":"q1","answers":[{"question":"a","selected":[],"text":"blue"}],"by":"user-1"}
70 by=ledger tool.completed {"call":"ask","synthetic":true}
70 by=ledger turn.requested {"turn":"k3","cause":"answer","of_turn":"k2","prompt":"q1"}
-- decide @71s --
(none)
