After a stop that took a retry back, retry now requests another turn: the id of the earlier one is closed (T15, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- request --
now {"by":"ada"}
-- result --
4 turn.requested {"turn":"turn-r2hgy4rptbhlm4e5dcrt","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- facts --
5 by=ledger turn.stop_requested {"turn":"$requested","actor":"person","by":"ada"}
-- state --
idle owned-by=17 last=t1,failed,server_error stop=turn-r2hgy4rptbhlm4e5dcrt,person retry=abandoned,attempt=1,same=0,resumes=0,stopped
-- request --
now {"by":"ada"}
-- result --
6 turn.requested {"turn":"turn-q36athjai56d6jxigjhs","cause":"retry","of_turn":"t1","message":"m1","attempt":2,"options":{"model":"big"}}
-- state --
retrying owned-by=17 last=t1,failed,server_error requested=turn-q36athjai56d6jxigjhs,retry,of=t1,message=m1 stop=turn-r2hgy4rptbhlm4e5dcrt,person retry=starting,attempt=2,same=0,resumes=0
