After a stop the queue waits for a person: resume hands out the oldest message; without a message there is nothing to
resume (C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 by=compaction message.accepted {"message":"m2","content":"x","synthetic":false}
4 by=compaction message.accepted {"message":"m3","content":"x","synthetic":false}
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- decide --
(none)
-- request --
now {"by":"ada"}
-- result --
409 nothing to retry: the last turn did not fail
  {"status":"queued","reason":"last turn stopped","at":"@6s","seq":6}
-- request --
resume {"by":"ada"}
-- result --
7 turn.requested {"turn":"turn-2bwi2l5xja3dwzywv4tm","cause":"message","message":"m2"}
-- state --
queued owned-by=17 last=t1,stopped queued=m2 queued=m3 requested=turn-2bwi2l5xja3dwzywv4tm,message,message=m2
-- facts --
8 turn.started {"turn":"$requested"}
9 turn.stopped {"turn":"$turn","actor":"person"}
-- state --
queued owned-by=17 last=turn-2bwi2l5xja3dwzywv4tm,stopped queued=m3
