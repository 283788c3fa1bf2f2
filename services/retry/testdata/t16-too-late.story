Cancel comes too late for a retry that has fired, and for one that was given up otherwise: the refusal says which (T16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:05Z","error":{"kind":"server_error","text":"x"}}
-- at --
5
-- decide --
turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- wish --
cancel ada
= 409 the retry has begun: turn turn-xvry7jgnky2udt6aoshg is requested; a stop cancels it [starting: turn turn-xvry7jgnky2udt6aoshg]
-- facts --
6/ledger turn.stop_requested {"turn":"@asked","actor":"person","by":"ada"}
-- wish --
cancel ada
= 409 the retry is already abandoned: stopped [abandoned: stopped]
-- state --
idle last=t1,failed retry=abandoned,attempt=1,same=1,resumes=0,reason=stopped
