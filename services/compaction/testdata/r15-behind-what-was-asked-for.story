A message precedes the automatic continuation of a crashed turn, and no other request: a turn for an answer comes first
(R15, P12).

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
