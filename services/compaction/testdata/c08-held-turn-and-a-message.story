A turn is held because the conversation was too long and could not be compacted. It waits for a person. The person's
message gets the first turn, without another compaction (C8, C11).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"context_exceeded","text":"too long"},"had_output":false}
-- decide --
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":0,"limit":1000,"follow_up":"continue"}
-- facts --
5 compaction.started {"compaction":"$compaction"}
6 compaction.failed {"compaction":"$compaction","error":{"kind":"quota","text":"no"}}
-- decide --
(none)
-- state --
idle owned-by=17 last=t1,failed,context_exceeded compaction=held,mid-stream,quota compacted=failed,failures=1 retry=,attempt=0,same=1,resumes=0
-- facts --
7 by=compaction message.accepted {"message":"m1","content":"a","synthetic":false,"by":"ada"}
-- decide --
(none)
-- state --
queued owned-by=17 last=t1,failed,context_exceeded queued=m1 compaction=held,mid-stream,quota compacted=failed,failures=1 retry=,attempt=0,same=1,resumes=0
-- facts --
8 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"context_exceeded"}
-- decide --
9 turn.requested {"turn":"turn-k74ghf6qgdlzod4mweri","cause":"message","message":"m1"}
-- state --
queued owned-by=17 last=t1,failed,context_exceeded queued=m1 requested=turn-k74ghf6qgdlzod4mweri,message,message=m1 compaction=held,mid-stream,quota compacted=failed,failures=1 retry=abandoned,attempt=0,same=1,resumes=0,context_exceeded
