An answered turn continues without a retry beside it (R15, P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 prompt.requested {"prompt":"p1","kind":"question","delivery":"message"}
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 by=ledger turn.requested {"turn":"t2","cause":"answer","prompt":"p1"}
-- decide @60s --
(none)
-- state --
queued owned-by=17 last=t1,failed,server_error prompt=p1,answered requested=t2,answer retry=,attempt=0,same=1,resumes=0
