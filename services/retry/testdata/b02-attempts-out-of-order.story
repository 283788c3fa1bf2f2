What harnesses say about attempts does not count: retry counts itself (T9, V7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","attempt":99}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- at --
5
-- decide --
turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","attempt":1}
-- facts --
6 turn.started {"turn":"@asked","attempt":-3}
7 turn.failed {"turn":"@open","error":{"kind":"network","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":2,"delay_ms":4000,"due_at":"2026-03-01T12:00:09Z","error":{"kind":"network","text":"x"}}
-- state --
retrying last=turn-xvry7jgnky2udt6aoshg,failed retry=scheduled,attempt=2,same=1,resumes=0,due=9
