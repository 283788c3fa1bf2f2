A provider that always overflows gets no second compaction for the next message either: the first one did not help (C11,
C9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"context_exceeded","text":"x"},"had_output":false}
-- decide --
4 compaction.requested {"compaction":"compaction-w6yt3bpxhkrtkuzhisxv","reason":"mid-stream","used":0,"limit":0,"follow_up":"continue"}
-- facts --
5 compaction.started {"compaction":"$compaction"}
6 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
7 turn.requested {"turn":"turn-vlvye7njnooo5fwqyloz","cause":"follow-up","of_turn":"t1","compaction":"compaction-w6yt3bpxhkrtkuzhisxv"}
-- facts --
8 turn.started {"turn":"$requested","cause":"follow-up"}
9 turn.failed {"turn":"$turn","error":{"kind":"context_exceeded","text":"x"},"had_output":false}
-- decide --
(none)
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
10 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- facts --
11 by=retry retry.abandoned {"turn":"$last","attempt":0,"reason":"context_exceeded"}
-- decide --
12 turn.requested {"turn":"turn-tklworw56xigpyinoxco","cause":"message","message":"m1"}
-- facts --
13 turn.started {"turn":"$requested","cause":"message"}
14 turn.failed {"turn":"$turn","error":{"kind":"context_exceeded","text":"x"},"had_output":false}
-- decide --
(none)
-- state --
idle owned-by=17 last=turn-tklworw56xigpyinoxco,failed,context_exceeded compaction=stalled,mid-stream,no_progress compacted=completed retry=,attempt=0,same=1,resumes=0
