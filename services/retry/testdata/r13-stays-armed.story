A retry that was scheduled when its owner died stays armed for the same instant (R13, T14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 @4s session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- decide --
look @5s
-- decide @5s --
6 turn.requested {"turn":"turn-r77gicn6mam3j5knuf7y","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
