Cancel ends the wait at once; a second cancel is a success, and a cancelled retry can be requested by hand (T16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- request --
cancel {"by":"ada"}
-- result --
5 retry.abandoned {"turn":"t1","attempt":1,"reason":"cancelled"}
-- request --
cancel {"by":"bob"}
-- result --
nothing to append, see 5
-- decide @60s --
(none)
-- state --
idle owned-by=17 last=t1,failed,server_error retry=abandoned,attempt=1,same=1,resumes=0,cancelled
-- request --
now {"by":"ada"}
-- result --
6 turn.requested {"turn":"turn-q36athjai56d6jxigjhs","cause":"retry","of_turn":"t1","message":"m1","attempt":2,"options":{"model":"big"}}
