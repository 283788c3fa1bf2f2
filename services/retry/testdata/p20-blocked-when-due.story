A retry that is due while a blocking prompt is open waits for it; a prompt that does not block has no effect (P20, P7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 prompt.requested {"prompt":"p1","kind":"question","delivery":"message"}
6 prompt.requested {"prompt":"p2","kind":"question","delivery":"message","blocking":false}
-- decide @60s --
(none)
-- state --
waiting owned-by=17 last=t1,failed,server_error prompt=p1,awaiting prompt=p2,awaiting retry=scheduled,attempt=1,same=1,resumes=0,due=@5s
-- facts --
7 by=ledger prompt.dismissed {"prompt":"p1","by":"ada"}
-- decide --
8 turn.requested {"turn":"turn-g6nm52yrtrkzs4pvm3bh","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying owned-by=17 last=t1,failed,server_error prompt=p1,dismissed prompt=p2,awaiting requested=turn-g6nm52yrtrkzs4pvm3bh,retry,of=t1,message=m1 retry=starting,attempt=1,same=1,resumes=0
