The policy is auto. A person answers a question of a call after its process died, while another call of the turn waits
for a child. When the child ends, the turn is resumed, and names the decision (P13, P16).

-- facts --
1 session.opened {"incarnation":"17"}
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
-- decide @50s --
(none)
-- state --
s waiting turn=t1,message call=c2 waits-for=c2,k
k running owned-by=17 turn=k1,message
-- facts k --
51 turn.completed {"turn":"k1"}
52 session.released {}
-- decide @60s --
s 53 tool.completed {"call":"c2","output":{"child":"k","outcome":"completed","turn":"k1"},"synthetic":true}
s 53 turn.requested {"turn":"turn-nbvaiejvdgczo7ulqgng","cause":"resume","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
s retrying turn=t1,message requested=turn-nbvaiejvdgczo7ulqgng,resume,of=t1 retry=starting,attempt=0,same=0,resumes=1
k idle last=k1,completed
-- work turn --
turn: {"turn":"turn-nbvaiejvdgczo7ulqgng","cause":"resume","of_turn":"t1","attempt":1,"prompt":"p1","prompts":[{"prompt":"p1","seq":5,"status":"answered","by":"ada"}]}
-- facts --
70 session.claimed {"incarnation":"18"}
70 turn.started {"turn":"$requested"}
71 turn.completed {"turn":"$turn"}
-- owner --
alive
-- decide @100s --
(none)
-- state --
s idle owned-by=18 last=turn-nbvaiejvdgczo7ulqgng,completed
k idle last=k1,completed
