The policy is hold. A person answers a question of a call after its process died, while another call of the turn waits
for a child. The next process adopts that other call, and not the turn. The turn is its own, so no turn is requested
(P13, P16).

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
10 tool.started {"call":"c2","turn":"t1","name":"task"}
-- owner --
alive
-- decide @50s --
(none)
-- facts k --
60 turn.completed {"turn":"k1"}
61 session.released {}
-- decide @70s --
(none)
-- state --
s interrupted owned-by=18 turn=t1,message call=c2
k idle last=k1,completed
