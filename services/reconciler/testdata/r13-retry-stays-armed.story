A scheduled retry stays armed for the same instant (R13, T14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"500"},"had_output":false}
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"500"}}
-- owner --
dead
-- decide @60s --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- state --
retrying last=t1,failed,server_error retry=scheduled,attempt=1,same=1,resumes=0,due=@5s
