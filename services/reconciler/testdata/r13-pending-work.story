Work that no harness has taken stays for the next incarnation (R13). Recovery does not hand out work (R12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"500"},"had_output":false}
4 by=retry turn.requested {"turn":"t2","cause":"retry","of_turn":"t1","attempt":1}
-- owner --
dead
-- decide @60s --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- state --
retrying last=t1,failed,server_error requested=t2,retry,of=t1 retry=starting,attempt=1,same=1,resumes=0
