With resume hold, the call of a child that has settled is closed with its outcome, and the turn waits for a person (P16,
R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
-- facts child --
5 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
6 turn.started {"turn":"k1","cause":"message","synthetic":true}
8 prompt.requested {"prompt":"p1","turn":"k1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
-- owner --
dead
-- owner child --
dead
-- decide @20s --
child 9 session.orphaned {"reason":"owner-lost","incarnation":"17"}
s 10 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"child"}]}
-- facts child --
30 session.claimed {"incarnation":"18"}
31 turn.started {"turn":"k2","cause":"answer","of_turn":"k1","synthetic":true}
32 turn.completed {"turn":"k2"}
-- owner child --
alive
-- decide @40s --
s 33 tool.completed {"call":"task1","output":{"child":"child","outcome":"completed","turn":"k2"},"synthetic":true}
s 33 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
s interrupted last=t1,interrupted,owner-lost
child idle owned-by=18 last=k2,completed
