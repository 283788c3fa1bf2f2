The child of a held call does not exist any more: the call's outcome stays unknown, and the turn continues (P16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"gone"}]}
-- decide @60s --
5 tool.interrupted {"call":"task1","reason":"owner-lost","outcome":"unknown"}
5 turn.requested {"turn":"turn-zrwj4oenylf4lvolizb4","cause":"resume","of_turn":"t1"}
-- state --
retrying turn=t1,message requested=turn-zrwj4oenylf4lvolizb4,resume,of=t1 retry=starting,attempt=0,same=0,resumes=1
