A message goes before what a crashed turn would go on with by itself, and before nothing else: an answer that goes on has its turn
first (R15, P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
4 by=ledger turn.requested {"turn":"t2","cause":"answer"}
5 by=compaction message.accepted {"message":"m1","content":"a","synthetic":false,"by":"ada"}
-- decide --
(none)
-- state --
queued last=t1,interrupted,owner-lost queued=m1 requested=t2,answer
