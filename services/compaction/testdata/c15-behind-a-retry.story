A question of an earlier process, outside of any turn, waits. A turn fails, and its retry is scheduled. A person has the
conversation compacted with force. The retry keeps its place: no turn is requested for the superseded question (C15, C16).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 session.claimed {"incarnation":"18"}
4 by=harness message.accepted {"message":"m0","content":"fix the login","by":"bot","synthetic":true}
4 by=harness turn.started {"turn":"t1","cause":"message","message":"m0","synthetic":true}
5 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"429"}}
6 by=retry retry.scheduled {"turn":"t1","attempt":1,"due_at":"@60s","error":{"kind":"rate_limit","text":"429"}}
-- request --
compact {"by":"ada","force":true}
-- result --
7 prompt.superseded {"prompt":"p0","message":""}
7 compaction.requested {"compaction":"compaction-o5d7jfy7o6ttqpocpqdi","reason":"manual","used":0,"limit":1000}
-- state --
compacting owned-by=18 last=t1,failed,rate_limit prompt=p0,superseded compaction=requested,manual retry=scheduled,attempt=1,same=1,resumes=0,due=@60s
