While a blocking prompt is open nothing is scheduled; when it is over, the delay counts from the failure (T10, P20).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 prompt.requested {"prompt":"p1","kind":"question","delivery":"message"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
(none)
-- decide @60s --
(none)
-- state --
waiting last=t1,interrupted,owner-lost prompt=p1,awaiting
-- facts --
5 by=reconciler prompt.withdrawn {"prompt":"p1","reason":"deadline"}
-- decide --
6 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@6s","error":{"kind":"interrupted","text":"owner-lost"}}
-- decide --
7 turn.requested {"turn":"turn-haaegfd5cn7mhvyme4ev","cause":"resume","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying last=t1,interrupted,owner-lost requested=turn-haaegfd5cn7mhvyme4ev,resume,of=t1,message=m1 retry=starting,attempt=1,same=0,resumes=1
