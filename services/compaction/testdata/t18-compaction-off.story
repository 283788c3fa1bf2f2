With stall_after 0 a compaction may be silent without a limit; if it is set later, the time counts from the last fact or
ping (T18).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"stall_after_s":0}}
-- request --
compact {"by":"ada"}
-- result --
2 compaction.requested {"compaction":"compaction-fvzzv5qusrw5b73ov47p","reason":"manual","used":0,"limit":1000}
-- facts --
3 compaction.started {"compaction":"$compaction"}
-- decide @90000s --
(none)
-- facts --
90001 by=ledger session.configured {"policy":{"stall_after_s":60}}
-- decide @90061s --
90002 compaction.failed {"compaction":"compaction-fvzzv5qusrw5b73ov47p","error":{"kind":"stalled","text":"nothing was heard of it for 1m0s"}}
look @90063s
