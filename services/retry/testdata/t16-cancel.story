Cancel ends the wait at once; again is a success, and what was cancelled can be tried again by hand (T16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- wish --
cancel ada
= retry.abandoned {"turn":"t1","attempt":1,"reason":"cancelled"}
cancel bob
= nothing to append, see 5
-- at --
60
-- decide --
nothing
-- state --
idle last=t1,failed retry=abandoned,attempt=1,same=1,resumes=0,reason=cancelled
-- wish --
now ada
= turn.requested {"turn":"turn-q36athjai56d6jxigjhs","cause":"retry","of_turn":"t1","message":"m1","attempt":2,"options":{"model":"big"}}
