A person sent a message instead of answering, and the owner died before it read that: the call is closed, and the
requested turn has the message (P14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
5 by=compaction message.accepted {"message":"m2","content":"do something else","synthetic":false,"by":"user-1"}
-- owner --
dead
-- decide @60s --
6 session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 tool.failed {"call":"ask","error":{"kind":"answered-in-chat","text":"answered in chat"},"synthetic":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"message","of_turn":"t1","message":"m2","prompt":"p1","prompts":["p1"]}
-- state --
queued turn=t1,message queued=m2 requested=turn-z3ao44pwarq65qsh3etl,message,of=t1,message=m2
