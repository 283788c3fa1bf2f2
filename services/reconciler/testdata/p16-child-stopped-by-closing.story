A person closes the waiting child: the parent's call fails with that reason, and its turn continues (P16).

-- facts --
1 session.opened {"incarnation":"17"}
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
30 by=ledger session.closed {"reason":"archived","by":"user-1"}
-- decide @31s --
s 31 tool.failed {"call":"task1","error":{"kind":"child-settled","text":"child session child was stopped"},"synthetic":true}
s 31 turn.requested {"turn":"turn-hqqd5fanpu4zjsx67nxx","cause":"resume","of_turn":"t1"}
-- state --
s retrying turn=t1,message requested=turn-hqqd5fanpu4zjsx67nxx,resume,of=t1 retry=starting,attempt=0,same=0,resumes=1
child closed last=k1,stopped,session-closed
