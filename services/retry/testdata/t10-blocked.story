While a blocking prompt is open nothing is scheduled; when it is over, the delay counts from the failure (T10, P20).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 prompt.requested {"prompt":"p1","kind":"question","delivery":"message"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
nothing
-- at --
60
-- decide --
nothing
-- state --
waiting last=t1,interrupted prompt=p1,awaiting
-- facts --
5/reconciler prompt.withdrawn {"prompt":"p1","reason":"deadline"}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:06Z","error":{"kind":"interrupted","text":"owner-lost"}}
-- decide --
turn.requested {"turn":"turn-haaegfd5cn7mhvyme4ev","cause":"resume","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying last=t1,interrupted asked=turn-haaegfd5cn7mhvyme4ev,resume,of=t1 retry=starting,attempt=1,same=0,resumes=1
