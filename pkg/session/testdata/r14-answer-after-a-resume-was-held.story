A resume that was planned is abandoned when the policy becomes hold. The answer to a question of a call in the
background continues the interrupted turn, not the turn of the call (P13, R14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 tool.started {"call":"c1","turn":"t1","name":"bash","background":true}
3 prompt.requested {"prompt":"p1","call":"c1","kind":"question","delivery":"tool-result","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 turn.completed {"turn":"t1"}
5 turn.started {"turn":"t2","cause":"message","message":"m2"}
6 session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 turn.interrupted {"turn":"t2","reason":"owner-lost"}
7 retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"@8s","error":{"kind":"interrupted","text":"owner-lost"}}
8 session.configured {"policy":{"resume":"hold"},"by":"ada"}
9 retry.abandoned {"turn":"t2","attempt":1,"reason":"resume_held"}
-- request --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
-- result --
10 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada","owed":true}
10 tool.completed {"call":"c1","output":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"blue"}]},"synthetic":true}
10 turn.requested {"turn":"turn-tckh5nefe4bg6ltb45vq","cause":"answer","of_turn":"t2","message":"m2","prompt":"p1","prompts":["p1"]}
-- state --
queued last=t2,interrupted,owner-lost prompt=p1,answered requested=turn-tckh5nefe4bg6ltb45vq,answer,of=t2,message=m2 retry=abandoned,attempt=1,same=0,resumes=0,resume_held
