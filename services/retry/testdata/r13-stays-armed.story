A retry that was scheduled when its owner died stays armed for the same instant (R13, T14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- at --
4
-- facts --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- decide --
look 5
-- at --
5
-- decide --
turn.requested {"turn":"turn-r77gicn6mam3j5knuf7y","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
