Sub-agents at any depth are closed leaves first: a child that waits for nothing is settled by its recovery, so the calls
above it do not wait for it (R1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
-- facts child --
4 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
5 turn.started {"turn":"k1","cause":"message","synthetic":true}
6 tool.started {"call":"task2","turn":"k1","name":"task"}
-- facts grandchild --
7 session.opened {"incarnation":"17","parent":"child","parent_call":"task2","root":"s"}
8 turn.started {"turn":"g1","cause":"message","synthetic":true}
9 tool.started {"call":"bash1","turn":"g1","name":"bash"}
-- owner --
dead
-- owner child --
dead
-- owner grandchild --
dead
-- decide @60s --
grandchild 10 session.orphaned {"reason":"owner-lost","incarnation":"17"}
grandchild 10 tool.interrupted {"call":"bash1","reason":"owner-lost","outcome":"unknown"}
grandchild 10 turn.interrupted {"turn":"g1","reason":"owner-lost"}
child 11 session.orphaned {"reason":"owner-lost","incarnation":"17"}
child 11 tool.interrupted {"call":"task2","reason":"owner-lost","outcome":"unknown"}
child 11 turn.interrupted {"turn":"k1","reason":"owner-lost"}
s 12 session.orphaned {"reason":"owner-lost","incarnation":"17"}
s 12 tool.interrupted {"call":"task1","reason":"owner-lost","outcome":"unknown"}
s 12 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
s interrupted last=t1,interrupted,owner-lost
child interrupted last=k1,interrupted,owner-lost
grandchild interrupted last=g1,interrupted,owner-lost
