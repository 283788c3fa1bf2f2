Jitter is added to the delay, up to the configured part, derived from the turn's id (T1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- jitter --
0.5
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2034,"due_at":"@5.034s","error":{"kind":"server_error","text":"x"}}
-- decide @6s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
