The policy may limit the attempts, for all kinds of failures (T17).

-- facts --
1 session.opened {"incarnation":"17","policy":{"retry_max":2}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- repeat 2 --
network
-- decide --
12 retry.abandoned {"turn":"turn-wdomhejjgugbqmas3pk2","attempt":2,"reason":"retry_max"}
-- state --
idle owned-by=17 last=turn-wdomhejjgugbqmas3pk2,failed,network retry=abandoned,attempt=2,same=2,resumes=0,retry_max
