Retry now does not wait, and the attempt is counted (T15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- wish --
now ada
= turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
now bob
= nothing to append, see 5
cancel bob
= 409 the retry has begun: turn turn-xvry7jgnky2udt6aoshg is requested; a stop cancels it [starting: turn turn-xvry7jgnky2udt6aoshg]
-- state --
retrying last=t1,failed asked=turn-xvry7jgnky2udt6aoshg,retry,of=t1 retry=starting,attempt=1,same=0,resumes=0
-- facts --
6 turn.started {"turn":"@asked"}
-- wish --
now ada
= 409 turn turn-xvry7jgnky2udt6aoshg has not ended [running: turn turn-xvry7jgnky2udt6aoshg]
cancel ada
= 409 no retry is planned [running: turn turn-xvry7jgnky2udt6aoshg]
-- facts --
7 turn.failed {"turn":"@open","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":2,"delay_ms":4000,"due_at":"2026-03-01T12:00:11Z","error":{"kind":"server_error","text":"x"}}
