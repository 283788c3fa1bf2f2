Two decisions are undelivered, one of them a rejection: each closes its call, and the conversation continues once (P13,
P18).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"a1","turn":"t1","name":"question"}
4 tool.started {"call":"a2","turn":"t1","name":"edit"}
5 prompt.requested {"prompt":"p1","turn":"t1","call":"a1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
6 prompt.requested {"prompt":"p2","turn":"t1","call":"a2","kind":"permission","delivery":"callback"}
7 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
8 by=ledger prompt.rejected {"owed":true,"prompt":"p2","text":"use the other file","by":"user-2"}
-- owner --
dead
-- decide @60s --
9 session.orphaned {"reason":"owner-lost","incarnation":"17"}
9 tool.completed {"call":"a1","output":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"blue"}]},"synthetic":true}
9 tool.failed {"call":"a2","error":{"kind":"rejected","text":"use the other file"},"synthetic":true}
9 turn.requested {"turn":"turn-tqfnrkzi2r5zemjof75r","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1","p2"]}
-- state --
queued turn=t1,message requested=turn-tqfnrkzi2r5zemjof75r,answer,of=t1
