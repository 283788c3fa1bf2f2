Twenty failures of one kind in a row end the retries; retry now starts a new row (T17).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"empty_output","text":"x"},"had_output":false}
-- repeat 19 --
empty_output
-- decide --
80 retry.abandoned {"turn":"turn-ga6nam3a7jwgwgsbsoul","attempt":19,"reason":"no_progress"}
-- state --
idle owned-by=17 last=turn-ga6nam3a7jwgwgsbsoul,failed,empty_output retry=abandoned,attempt=19,same=20,resumes=0,no_progress
-- request --
now {"by":"ada"}
-- result --
81 turn.requested {"turn":"turn-cfwmtnchmbbzxzxjwqje","cause":"retry","of_turn":"turn-ga6nam3a7jwgwgsbsoul","message":"m1","attempt":20,"options":{"model":"big"}}
-- state --
retrying owned-by=17 last=turn-ga6nam3a7jwgwgsbsoul,failed,empty_output requested=turn-cfwmtnchmbbzxzxjwqje,retry,of=turn-ga6nam3a7jwgwgsbsoul,message=m1 retry=starting,attempt=20,same=0,resumes=0
