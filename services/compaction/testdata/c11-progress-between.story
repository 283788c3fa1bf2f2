After a completed turn the next message that overflows gets a new compaction (C11).

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
9 turn.completed {"turn":"$turn"}
10 turn.started {"turn":"t5","cause":"message"}
11 turn.failed {"turn":"t5","error":{"kind":"context_exceeded","text":"x"},"had_output":false}
-- decide --
12 compaction.requested {"compaction":"compaction-kaij4g2yfcjo3poqkf6a","reason":"mid-stream","used":0,"limit":0,"follow_up":"continue"}
