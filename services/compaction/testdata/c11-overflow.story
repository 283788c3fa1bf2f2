The conversation is too long for the provider: one compaction, then the same turn again, with its request. A second
overflow ends it, with the reason (C11).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=compaction message.accepted {"message":"m0","content":"begin","synthetic":false,"by":"ada"}
3 turn.started {"turn":"t1","cause":"message","message":"m0","options":{"model":"large"}}
4 turn.failed {"turn":"t1","error":{"kind":"context_exceeded","text":"prompt is too long"},"had_output":false}
-- decide --
5 compaction.requested {"compaction":"compaction-efk76dholipsrhhulwuw","reason":"mid-stream","used":0,"limit":0,"follow_up":"continue","message":"m0"}
-- state --
compacting owned-by=17 last=t1,failed,context_exceeded compaction=requested,mid-stream retry=,attempt=0,same=1,resumes=0
-- facts --
6 compaction.started {"compaction":"$compaction"}
7 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
8 turn.requested {"turn":"turn-jmth7jl744w3ywoekayo","cause":"follow-up","of_turn":"t1","message":"m0","options":{"model":"large"},"compaction":"compaction-efk76dholipsrhhulwuw"}
-- facts --
9 turn.started {"turn":"$requested","cause":"follow-up"}
10 turn.failed {"turn":"$turn","error":{"kind":"context_exceeded","text":"prompt is too long"},"had_output":false}
-- decide --
(none)
-- state --
idle owned-by=17 last=turn-jmth7jl744w3ywoekayo,failed,context_exceeded compaction=stalled,mid-stream,no_progress compacted=completed retry=,attempt=0,same=2,resumes=0
-- facts --
11 by=retry retry.abandoned {"turn":"$last","attempt":0,"reason":"context_exceeded"}
-- decide --
(none)
-- state --
idle owned-by=17 last=turn-jmth7jl744w3ywoekayo,failed,context_exceeded compaction=stalled,mid-stream,no_progress compacted=completed retry=abandoned,attempt=0,same=2,resumes=0,context_exceeded
