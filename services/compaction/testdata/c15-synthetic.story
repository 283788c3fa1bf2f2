Automatic requests and synthetic messages change neither the last use nor a person's choices (C15, P14, N3).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"auto_retry":false}}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result"}
-- request --
send {"message":"m1","content":"a note","synthetic":true,"by":"bot"}
-- result --
4 message.accepted {"message":"m1","content":"a note","synthetic":true,"by":"bot"}
-- state --
waiting owned-by=17 turn=t1,message prompt=p1,awaiting queued=m1 auto-retry=off
-- facts --
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
6 prompt.delivered {"prompt":"p1"}
7 usage.reported {"turn":"t1","model":"m","tokens":{"input":900}}
-- decide --
8 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 90 %: it is compacted, then this continues"}
8 compaction.requested {"compaction":"compaction-gg7ry2btio3644qz766o","reason":"mid-stream","used":900,"limit":1000,"follow_up":"continue"}
-- state --
compacting owned-by=17 turn=t1,message queued=m1 stop=t1,compaction compaction=requested,mid-stream used=900/1000 warn auto-retry=off
