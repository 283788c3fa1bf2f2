A turn that is held because the conversation was too long, and could not be compacted, waits for a person. What that says has its turn
first; the compaction is not asked for again for it (C8, C11).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"context_exceeded","text":"too long"},"had_output":false}
-- decide --
compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":0,"limit":1000,"follow_up":"continue"}
-- facts --
5 compaction.started {"compaction":"$compaction"}
6 compaction.failed {"compaction":"$compaction","error":{"kind":"quota","text":"no"}}
-- decide --
nothing
-- state --
seq=6 idle owned-by=17 last=t1,failed compaction=held,mid-stream because=quota compacted=failed,1
-- facts --
7/compaction message.accepted {"message":"m1","content":"a","synthetic":false,"by":"ada"}
-- decide --
nothing
-- state --
seq=7 queued owned-by=17 last=t1,failed queued=m1 compaction=held,mid-stream because=quota compacted=failed,1
-- facts --
8/retry retry.abandoned {"turn":"t1","attempt":0,"reason":"context_exceeded"}
-- decide --
turn.requested {"turn":"turn-k74ghf6qgdlzod4mweri","cause":"message","message":"m1"}
-- state --
seq=9 queued owned-by=17 last=t1,failed queued=m1 pending=message,m1 compaction=held,mid-stream because=quota compacted=failed,1 retry=abandoned,context_exceeded
