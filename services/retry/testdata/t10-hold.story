With policy hold an interrupted turn waits for a person, who may resume it (R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
(none)
-- state --
interrupted last=t1,interrupted,owner-lost
-- decide @6000s --
(none)
-- request --
resume {"by":"ada"}
-- result --
4 turn.requested {"turn":"turn-r2hgy4rptbhlm4e5dcrt","cause":"resume","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- state --
retrying last=t1,interrupted,owner-lost requested=turn-r2hgy4rptbhlm4e5dcrt,resume,of=t1,message=m1 retry=starting,attempt=1,same=0,resumes=1
