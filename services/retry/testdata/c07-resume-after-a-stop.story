After a stop the queue waits for a person: resume hands out the oldest message; with none there is nothing to resume (C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3/compaction message.accepted {"message":"m2","content":"x","synthetic":false}
4/compaction message.accepted {"message":"m3","content":"x","synthetic":false}
5/ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- decide --
nothing
-- wish --
now ada
= 409 nothing to retry: the last turn did not fail [queued: last turn stopped]
resume ada
= turn.requested {"turn":"turn-2bwi2l5xja3dwzywv4tm","cause":"message","message":"m2"}
-- state --
queued last=t1,stopped asked=turn-2bwi2l5xja3dwzywv4tm,message,of= queued=2
-- facts --
8 turn.started {"turn":"@asked"}
9 turn.stopped {"turn":"@open","actor":"person"}
-- state --
queued last=turn-2bwi2l5xja3dwzywv4tm,stopped queued=1
