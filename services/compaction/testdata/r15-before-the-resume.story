A person's message precedes the automatic continuation of a crashed turn, even if that was requested already (R15).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
4 by=retry turn.requested {"turn":"t2","cause":"resume","of_turn":"t1"}
-- decide --
(none)
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
5 turn.requested {"turn":"turn-urfx73yfbrfbvted7naj","cause":"message","message":"m1"}
-- state --
queued last=t1,interrupted,owner-lost queued=m1 requested=turn-urfx73yfbrfbvted7naj,message,message=m1 retry=,attempt=0,same=0,resumes=1
