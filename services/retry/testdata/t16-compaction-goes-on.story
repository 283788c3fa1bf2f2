Cancel does not claim to have ended a continuation after a compaction; a stop cancels it (T16, C11).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 turn.failed {"turn":"t1","error":{"kind":"context_exceeded","text":"x"},"had_output":false}
-- request --
cancel {"by":"ada"}
-- result --
409 no retry is planned: the turn continues after the compaction; a stop cancels it
  {"status":"idle","reason":"last turn failed","at":"@3s","seq":3}
-- facts --
4 by=compaction compaction.requested {"compaction":"k1","reason":"mid-stream","used":3,"limit":2,"follow_up":"continue","message":"m1"}
-- request --
cancel {"by":"ada"}
-- result --
409 no retry is planned: the turn continues after the compaction; a stop cancels it
  {"status":"compacting","reason":"last turn failed","at":"@3s","seq":3}
-- facts --
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 compaction.started {"compaction":"k1"}
7 compaction.completed {"compaction":"k1"}
-- decide --
8 retry.abandoned {"turn":"t1","attempt":0,"reason":"stopped"}
-- state --
idle owned-by=17 last=t1,failed,context_exceeded stop=t1,person compacted=completed retry=abandoned,attempt=0,same=1,resumes=0,stopped
