A retry that was asked for and that nobody took survives its owner, is asked for once, and taken once (R13).

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
-- facts --
6 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- at --
6000
-- decide --
nothing
-- state --
retrying last=t1,failed asked=turn-xvry7jgnky2udt6aoshg,retry,of=t1 retry=starting,attempt=1,same=1,resumes=0
-- facts --
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"@asked"}
-- decide --
watch 6600
-- state --
running turn=turn-xvry7jgnky2udt6aoshg,retry last=t1,failed retry=,attempt=1,same=1,resumes=0
