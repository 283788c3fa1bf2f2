A failure that nobody decided about before everything died is decided from the document, as if at once (T19).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- at --
4.5
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- decide --
look 5
-- at --
5
-- decide --
turn.requested {"turn":"turn-r77gicn6mam3j5knuf7y","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying last=t1,failed asked=turn-r77gicn6mam3j5knuf7y,retry,of=t1 retry=starting,attempt=1,same=1,resumes=0
