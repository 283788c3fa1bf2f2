A person's answer to a sub-agent outside of any turn, after the process was gone, still needs a turn: the parent waits
for that, as for any requested work except a retry (P16).

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
10 prompt.requested {"prompt":"q1","kind":"question","delivery":"message","questions":[{"id":"a","question":"Which?","custom":true}]}
-- facts --
11 session.claimed {"incarnation":"17"}
12 tool.started {"call":"task1","turn":"t1","name":"task"}
13 turn.started {"turn":"t1","cause":"message"}
-- owner --
dead
-- owner child --
dead
-- decide @60s --
child 14 session.orphaned {"reason":"owner-lost","incarnation":"17"}
s 15 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"child"}]}
-- state --
s waiting turn=t1,message call=task1 waits-for=task1,child
child waiting last=k1,interrupted,owner-lost prompt=q1,awaiting
-- facts child --
70 by=ledger prompt.answered {"owed":true,"prompt":"q1","answers":[{"question":"a","selected":[],"text":"blue"}],"by":"user-1"}
70 by=ledger turn.requested {"turn":"k2","cause":"answer","prompt":"q1"}
-- decide @71s --
(none)
-- state --
s waiting turn=t1,message call=task1 waits-for=task1,child
child queued last=k1,interrupted,owner-lost prompt=q1,answered requested=k2,answer
-- facts child --
72 session.claimed {"incarnation":"18"}
73 turn.started {"turn":"k2","cause":"answer","prompt":"q1"}
74 turn.completed {"turn":"k2"}
-- owner child --
alive
-- decide @75s --
s 75 tool.completed {"call":"task1","output":{"child":"child","outcome":"completed","turn":"k2"},"synthetic":true}
s 75 turn.requested {"turn":"turn-edb2ufayhsfpsh2gcgxc","cause":"resume","of_turn":"t1"}
