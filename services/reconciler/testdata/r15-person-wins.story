The owner died after an answer and before it closed the call, and meanwhile a person requested another turn: the answer
becomes the call's output, and the person's turn is kept (R15, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
6 by=compaction message.accepted {"message":"m2","content":"never mind","synthetic":false,"by":"user-1"}
6 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m2"}
-- owner --
dead
-- decide @60s --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 tool.completed {"call":"ask","output":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"blue"}]},"synthetic":true}
7 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
queued last=t1,interrupted,owner-lost queued=m2 requested=t2,message,message=m2
