A person's policy hold wins over an earlier resume request that no harness has taken; a person who then resumes gets it
(R14, R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"interrupted","text":"owner-lost"}}
-- decide @5s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"resume","of_turn":"t1","message":"m1","attempt":1}
-- facts --
6 @5s session.configured {"policy":{"resume":"hold"},"by":"ada"}
-- decide --
7 retry.abandoned {"turn":"t1","attempt":1,"reason":"resume_held"}
-- state --
interrupted last=t1,interrupted,owner-lost retry=abandoned,attempt=1,same=0,resumes=1,resume_held
-- request --
resume {"by":"ada"}
-- result --
8 turn.requested {"turn":"turn-cfa5r6246wwbkzobaup5","cause":"resume","of_turn":"t1","message":"m1","attempt":2}
-- decide --
(none)
-- state --
retrying last=t1,interrupted,owner-lost requested=turn-cfa5r6246wwbkzobaup5,resume,of=t1,message=m1 retry=starting,attempt=2,same=0,resumes=1
