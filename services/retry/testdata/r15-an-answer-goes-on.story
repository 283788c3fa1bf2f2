What a person answered goes on by itself, with no retry beside it (R15, P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 prompt.requested {"prompt":"p1","kind":"question","delivery":"message"}
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
5/ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
5/ledger turn.requested {"turn":"t2","cause":"answer","prompt":"p1"}
-- at --
60
-- decide --
nothing
-- state --
queued last=t1,failed asked=t2,answer,of= retry=,attempt=0,same=1,resumes=0 prompt=p1,answered
