A whole tree was fenced, with each call that has a child, and its reconciler died then: the next one finds the fence. A
child that was fenced together with its parent does not keep the parent's turn open: it is interrupted, not continued
(R1, R3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
-- facts child --
4 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
5 turn.started {"turn":"k1","cause":"message","synthetic":true}
-- facts --
6 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"child"}]}
-- facts child --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- decide @8s --
child 8 turn.interrupted {"turn":"k1","reason":"owner-lost"}
s 9 tool.interrupted {"call":"task1","reason":"owner-lost","outcome":"unknown"}
s 9 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
s interrupted last=t1,interrupted,owner-lost
child interrupted last=k1,interrupted,owner-lost
