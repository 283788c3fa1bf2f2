A failure that is reported twice is one, also after the decision; work that nobody takes stays, and is no failure (T9, V7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
late 4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- facts --
late 6 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
turn.requested {"turn":"turn-haaegfd5cn7mhvyme4ev","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- at --
60
-- decide --
nothing
-- at --
6000
-- decide --
nothing
-- state --
retrying last=t1,failed asked=turn-haaegfd5cn7mhvyme4ev,retry,of=t1 retry=starting,attempt=1,same=1,resumes=0
