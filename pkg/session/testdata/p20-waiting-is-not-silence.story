Waiting for a person is not silence: the phase is waiting, before anything that would run by itself (P20).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback"}
-- state phase --
phase: "waiting"
-- facts --
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":true}
5 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@6s","error":{"kind":"server_error","text":"x"}}
6 by=compaction message.accepted {"message":"m1","content":"x","synthetic":true}
7 by=compaction compaction.requested {"compaction":"k1","reason":"idle","used":1,"limit":2}
-- state phase --
phase: "waiting"
-- facts --
8 prompt.withdrawn {"prompt":"p1","reason":"done"}
-- state phase --
phase: "compacting"
