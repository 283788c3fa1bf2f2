A sub-agent waits for a person when the process dies: the calls and turns above it stay open, waiting. When it has
settled, the call above is closed with its outcome, and the turn above continues, once (P16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
4 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- facts child --
5 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
6 turn.started {"turn":"k1","cause":"message","synthetic":true}
7 tool.started {"call":"ask","turn":"k1","name":"question"}
8 prompt.requested {"prompt":"p1","turn":"k1","call":"ask","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
-- owner --
dead
-- owner child --
dead
-- decide @60s --
child 9 session.orphaned {"reason":"owner-lost","incarnation":"17"}
s 10 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"child"}]}
s 10 tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
-- state --
s waiting turn=t1,message call=task1 waits-for=task1,child
child waiting turn=k1,message call=ask prompt=p1,awaiting
-- facts child --
70 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
70 by=ledger tool.completed {"call":"ask","synthetic":true}
70 by=ledger turn.requested {"turn":"k2","cause":"answer","of_turn":"k1","prompt":"p1"}
-- decide @71s --
(none)
-- facts child --
72 session.claimed {"incarnation":"18"}
73 turn.started {"turn":"k2","cause":"answer","of_turn":"k1","synthetic":true}
-- owner child --
alive
-- decide @74s --
(none)
-- facts child --
75 turn.completed {"turn":"k2"}
-- decide @76s --
s 76 tool.completed {"call":"task1","output":{"child":"child","outcome":"completed","turn":"k2"},"synthetic":true}
s 76 turn.requested {"turn":"turn-hqqd5fanpu4zjsx67nxx","cause":"resume","of_turn":"t1"}
-- state --
s retrying turn=t1,message requested=turn-hqqd5fanpu4zjsx67nxx,resume,of=t1 retry=starting,attempt=0,same=0,resumes=1
child idle owned-by=18 last=k2,completed
