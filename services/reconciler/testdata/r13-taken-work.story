A turn that a harness has taken is interrupted, not handed out again (R13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"500"},"had_output":false}
4 by=retry turn.requested {"turn":"t2","cause":"retry","of_turn":"t1","attempt":1}
5 turn.started {"turn":"t2","cause":"retry","of_turn":"t1","attempt":1}
-- owner --
dead
-- decide @60s --
6 session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 turn.interrupted {"turn":"t2","reason":"owner-lost"}
-- state --
interrupted last=t2,interrupted,owner-lost retry=,attempt=1,same=1,resumes=0
