A turn completes before its process reads a person's stop. The person resumes the session, and the message that was
queued before the stop starts (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 by=compaction message.accepted {"message":"m1","content":"next"}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
5 turn.completed {"turn":"t1"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- decide @7s --
(none)
-- request @9s --
resume {"by":"ben"}
-- result --
7 turn.requested {"turn":"turn-ralc6gc3b6gzk32xfjuk","cause":"message","message":"m1"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 requested=turn-ralc6gc3b6gzk32xfjuk,message,message=m1
