A retry that came due while nothing ran fires at once when it is looked at again: the same attempt, however often the service was restarted (T14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- at --
4
-- decide --
look 5
-- decide --
look 5
-- at --
86400
-- decide --
turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- decide --
nothing
-- state --
retrying last=t1,failed asked=turn-xvry7jgnky2udt6aoshg,retry,of=t1 retry=starting,attempt=1,same=1,resumes=0
