Two children, one of which waits for a person: the call of the other one is interrupted, and the turn waits for the
first (P16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
4 tool.started {"call":"task2","turn":"t1","name":"task"}
-- facts a --
5 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
6 turn.started {"turn":"k1","cause":"message","synthetic":true}
7 prompt.requested {"prompt":"p1","turn":"k1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
-- facts b --
8 session.opened {"incarnation":"17","parent":"s","parent_call":"task2","root":"s"}
9 turn.started {"turn":"k2","cause":"message","synthetic":true}
-- owner --
dead
-- owner a --
dead
-- owner b --
dead
-- decide @20s --
a 10 session.orphaned {"reason":"owner-lost","incarnation":"17"}
b 11 session.orphaned {"reason":"owner-lost","incarnation":"17"}
b 11 turn.interrupted {"turn":"k2","reason":"owner-lost"}
s 12 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"a"}]}
s 12 tool.interrupted {"call":"task2","reason":"owner-lost","outcome":"unknown"}
-- state --
s waiting turn=t1,message call=task1 waits-for=task1,a
a waiting turn=k1,message prompt=p1,awaiting
b interrupted last=k2,interrupted,owner-lost
