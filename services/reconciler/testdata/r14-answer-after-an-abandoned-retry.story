With resume hold, an answer continues the turn that was interrupted last, also after the retry of an earlier turn was
abandoned (P13, R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"},"had_output":false}
4 retry.abandoned {"turn":"t1","attempt":0,"reason":"authentication"}
5 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
6 turn.started {"turn":"t2","cause":"message","synthetic":true}
-- owner --
dead
-- decide --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 turn.interrupted {"turn":"t2","reason":"owner-lost"}
-- facts --
9 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- decide @60s --
10 turn.requested {"turn":"turn-tckh5nefe4bg6ltb45vq","cause":"answer","of_turn":"t2","prompt":"p1","prompts":["p1"]}
-- state --
queued last=t2,interrupted,owner-lost prompt=p1,answered requested=turn-tckh5nefe4bg6ltb45vq,answer,of=t2 retry=abandoned,attempt=0,same=1,resumes=0,authentication
