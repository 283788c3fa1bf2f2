A failure that is reported twice counts once, also after the decision; work that no harness takes stays, and is no
failure (T9, V7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
4 late turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
5 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
6 late turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
7 turn.requested {"turn":"turn-haaegfd5cn7mhvyme4ev","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- decide @60s --
(none)
-- decide @6000s --
(none)
-- state --
retrying owned-by=17 last=t1,failed,server_error requested=turn-haaegfd5cn7mhvyme4ev,retry,of=t1,message=m1 retry=starting,attempt=1,same=1,resumes=0
