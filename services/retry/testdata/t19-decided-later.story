A failure that was not decided before all processes died is decided from the document, with the same result (T19).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- decide @4.5s --
5 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- decide --
look @5s
-- decide @5s --
6 turn.requested {"turn":"turn-r77gicn6mam3j5knuf7y","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying last=t1,failed,server_error requested=turn-r77gicn6mam3j5knuf7y,retry,of=t1,message=m1 retry=starting,attempt=1,same=1,resumes=0
