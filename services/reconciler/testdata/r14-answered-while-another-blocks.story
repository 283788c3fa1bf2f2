With resume hold, a question outside of turns is answered while another one blocks. When that one is dismissed, the
answer continues the interrupted turn (P13, R14).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
5 session.configured {"policy":{"resume":"hold"},"by":"ada"}
6 retry.abandoned {"turn":"t1","attempt":0,"reason":"resume_held"}
7 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- decide --
(none)
-- facts --
8 by=ledger prompt.dismissed {"prompt":"p2","by":"ada"}
-- decide --
9 turn.requested {"turn":"turn-tqfnrkzi2r5zemjof75r","cause":"answer","of_turn":"t1","message":"m1","prompt":"p1","prompts":["p1","p2"]}
-- state --
queued last=t1,interrupted,owner-lost prompt=p1,answered prompt=p2,dismissed requested=turn-tqfnrkzi2r5zemjof75r,answer,of=t1,message=m1 retry=abandoned,attempt=0,same=0,resumes=0,resume_held
