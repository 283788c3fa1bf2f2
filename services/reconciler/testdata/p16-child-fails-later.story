A child that its parent waits for fails later: the reconciler leaves retry a moment to schedule it; then the parent's
call fails with the child's error, and its turn continues (P16).

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
30 session.claimed {"incarnation":"18"}
31 turn.started {"turn":"k2","cause":"answer","of_turn":"k1","synthetic":true}
32 turn.failed {"turn":"k2","error":{"kind":"model_refusal","text":"no"},"had_output":false}
-- owner child --
alive
-- decide @33s --
s look @34s
-- decide @34s --
s 33 tool.failed {"call":"task1","error":{"kind":"child-settled","text":"child session child failed: model_refusal no"},"synthetic":true}
s 33 turn.requested {"turn":"turn-hqqd5fanpu4zjsx67nxx","cause":"resume","of_turn":"t1"}
-- state --
s retrying turn=t1,message requested=turn-hqqd5fanpu4zjsx67nxx,resume,of=t1 retry=starting,attempt=0,same=0,resumes=1
child idle owned-by=18 last=k2,failed,model_refusal retry=,attempt=0,same=1,resumes=0
