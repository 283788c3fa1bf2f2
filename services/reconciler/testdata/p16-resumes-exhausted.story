A child has settled, and its parent has been continued as often as its policy allows: the call is closed, the turn is
interrupted (P16, V8).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume_max":0}}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
-- facts child --
4 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
5 turn.started {"turn":"k1","cause":"message","synthetic":true}
6 turn.completed {"turn":"k1"}
-- owner --
dead
-- owner child --
dead
-- decide @60s --
child 7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
s 8 session.orphaned {"reason":"owner-lost","incarnation":"17"}
s 8 tool.completed {"call":"task1","output":{"child":"child","outcome":"completed","turn":"k1"},"synthetic":true}
s 8 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
s interrupted last=t1,interrupted,owner-lost
child idle last=k1,completed
