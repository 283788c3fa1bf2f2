A pending turn goes by its start, its message's withdrawal, an abandon, a person's stop, the session's close; a stop by the system is no such thing (§3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
4 by=retry turn.requested {"turn":"t2","cause":"retry","of_turn":"t1"}
5 by=compaction turn.stop_requested {"turn":"t2","actor":"compaction"}
-- ignored --
5: 1, the last turn.stop_requested by compaction: unknown
-- work turn --
turn: {"turn":"t2","cause":"retry","of_turn":"t1","attempt":1}
-- facts --
6 by=retry retry.abandoned {"turn":"t1","attempt":1,"reason":"cancelled"}
-- work --
(none)
-- state retry phase --
retry: {"state":"abandoned","turn":"t1","attempt":1,"reason":"cancelled","error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":0}
phase: "idle"
-- facts --
7 by=compaction turn.requested {"turn":"t3","cause":"follow-up"}
8 by=retry retry.abandoned {"turn":"t1","attempt":1,"reason":"cancelled"}
-- work turn --
turn: {"turn":"t3","cause":"follow-up","attempt":1}
