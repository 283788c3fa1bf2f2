The policy is hold. A person answers a question of a call after its process died, while another call of the turn waits
for a child. The next process adopts the turn, with the decision, and dies, too. When the child ends, the turn waits for
a person (P16, R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
2 tool.started {"call":"c2","turn":"t1","name":"task"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"c2","child":"k"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 by=ledger tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
-- facts k --
6 session.opened {"incarnation":"17","parent":"s","root":"s","parent_call":"c2"}
7 turn.started {"turn":"k1","cause":"message","synthetic":true}
-- facts --
10 session.claimed {"incarnation":"18"}
10 turn.started {"turn":"t1"}
-- owner --
dead
-- decide @50s --
s 11 session.orphaned {"reason":"owner-lost","incarnation":"18","waits_for":[{"call":"c2","child":"k"}]}
-- facts k --
60 turn.completed {"turn":"k1"}
61 session.released {}
-- decide @70s --
s 62 tool.completed {"call":"c2","output":{"child":"k","outcome":"completed","turn":"k1"},"synthetic":true}
s 62 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
s interrupted last=t1,interrupted,owner-lost
k idle last=k1,completed
