An answer is delivered, and the conversation does not continue while another question still blocks (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"a1","turn":"t1","name":"question"}
4 tool.started {"call":"a2","turn":"t1","name":"question"}
5 prompt.requested {"prompt":"p1","turn":"t1","call":"a1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
6 prompt.requested {"prompt":"p2","turn":"t1","call":"a2","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"When?"}]}
7 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
-- owner --
dead
-- decide @60s --
8 session.orphaned {"reason":"owner-lost","incarnation":"17"}
8 tool.completed {"call":"a1","output":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"blue"}]},"synthetic":true}
-- state --
waiting turn=t1,message call=a2 prompt=p2,awaiting
