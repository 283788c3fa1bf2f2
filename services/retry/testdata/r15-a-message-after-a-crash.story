A person's message after a crash comes first: the dead turn is not resumed beside the message (R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"interrupted","text":"owner-lost"}}
-- facts --
5 by=compaction message.accepted {"message":"m2","content":"x","synthetic":false,"by":"ada"}
-- decide @60s --
(none)
-- state --
retrying last=t1,interrupted,owner-lost queued=m2 retry=scheduled,attempt=1,same=0,resumes=0,due=@5s
-- facts --
6 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m2"}
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"t2"}
-- state --
running owned-by=18 turn=t2,message last=t1,interrupted,owner-lost
