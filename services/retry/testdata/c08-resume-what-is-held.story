A compaction failed, and its follow-up does not fit: a person's resume continues it all the same (C8, C7).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message","options":{"model":"big"}}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":1200}}
4 by=compaction turn.stop_requested {"turn":"t1","actor":"compaction"}
5 compaction.requested {"compaction":"k1","reason":"mid-stream","used":1200,"limit":1000,"follow_up":"continue"}
6 turn.stopped {"turn":"t1","actor":"compaction"}
7 compaction.failed {"compaction":"k1","error":{"kind":"quota","text":"x"}}
-- decide --
(none)
-- request --
resume {"by":"ada"}
-- result --
8 turn.requested {"turn":"turn-g6nm52yrtrkzs4pvm3bh","cause":"retry","of_turn":"t1","attempt":1,"options":{"model":"big"}}
-- state --
retrying owned-by=17 last=t1,stopped requested=turn-g6nm52yrtrkzs4pvm3bh,retry,of=t1 compaction=held,mid-stream,quota compacted=failed,failures=1 retry=starting,attempt=1,same=0,resumes=0 used=1200/1000 warn
-- facts --
9 turn.started {"turn":"$requested"}
10 turn.completed {"turn":"$turn"}
-- decide --
(none)
-- state --
idle owned-by=17 last=turn-g6nm52yrtrkzs4pvm3bh,completed compacted=failed,failures=1 used=1200/1000 warn
