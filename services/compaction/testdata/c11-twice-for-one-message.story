A second overflow for the same message ends it, although usage had fallen in between (C11).

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
9 usage.reported {"turn":"$turn","model":"m","tokens":{"input":300}}
10 turn.failed {"turn":"$turn","error":{"kind":"context_exceeded","text":"x"},"had_output":true}
-- decide --
(none)
-- state --
idle owned-by=17 last=turn-vlvye7njnooo5fwqyloz,failed,context_exceeded compacted=completed retry=,attempt=0,same=2,resumes=0 used=300/0
