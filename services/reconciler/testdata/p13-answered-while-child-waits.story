An answer is delivered, and the conversation does not continue while a call of its turn waits for a child (P13, P16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"a1","turn":"t1","name":"question"}
4 tool.started {"call":"task1","turn":"t1","name":"task"}
5 prompt.requested {"prompt":"p1","turn":"t1","call":"a1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
-- facts child --
7 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
8 turn.started {"turn":"k1","cause":"message","synthetic":true}
9 prompt.requested {"prompt":"p2","turn":"k1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"When?"}]}
-- owner --
dead
-- owner child --
dead
-- decide @60s --
child 10 session.orphaned {"reason":"owner-lost","incarnation":"17"}
s 11 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"child"}]}
s 11 tool.completed {"call":"a1","output":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"blue"}]},"synthetic":true}
-- state --
s waiting turn=t1,message call=task1 waits-for=task1,child
child waiting turn=k1,message prompt=p2,awaiting
-- facts child --
70 by=ledger prompt.dismissed {"prompt":"p2","by":"user-1"}
-- decide @71s --
child 71 turn.requested {"turn":"turn-66rkgw7hish3lf3bxckg","cause":"answer","of_turn":"k1","prompt":"p2","prompts":["p2"]}
-- state --
s waiting turn=t1,message call=task1 waits-for=task1,child
child queued turn=k1,message prompt=p2,dismissed requested=turn-66rkgw7hish3lf3bxckg,answer,of=k1
