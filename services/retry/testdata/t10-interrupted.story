A turn whose process died is retried like a failed one, after 2 seconds, as a resume that is counted before it is made
(T10, R14, V8).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"interrupted","text":"owner-lost"}}
-- state --
retrying last=t1,interrupted,owner-lost retry=scheduled,attempt=1,same=0,resumes=0,due=@5s
-- decide @5s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"resume","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying last=t1,interrupted,owner-lost requested=turn-xvry7jgnky2udt6aoshg,resume,of=t1,message=m1 retry=starting,attempt=1,same=0,resumes=1
-- facts --
6 @5s session.claimed {"incarnation":"18"}
6 turn.started {"turn":"$requested"}
-- state --
running owned-by=18 turn=turn-xvry7jgnky2udt6aoshg,resume last=t1,interrupted,owner-lost retry=,attempt=1,same=0,resumes=1
