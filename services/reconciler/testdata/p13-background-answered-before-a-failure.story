A question of a call in the background is answered. The turn fails, and is not retried. The process dies. Recovery ends
the call, and the decision waits for a person as the queue does (P13, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t2","cause":"message","synthetic":true}
3 tool.started {"call":"c5","turn":"t2","name":"ask","background":true}
3 prompt.requested {"prompt":"p4","turn":"t2","call":"c5","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 prompt.unattended {"prompt":"p4"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p4","answers":[],"by":"ada"}
6 turn.failed {"turn":"t2","error":{"kind":"authentication","text":"x"}}
7 by=retry retry.abandoned {"turn":"t2","attempt":0,"reason":"authentication"}
-- owner --
alive
-- decide @20s --
(none)
-- state held_seq --
held_seq: 6
-- owner --
dead
-- decide @60s --
8 session.orphaned {"reason":"owner-lost","incarnation":"17"}
8 tool.completed {"call":"c5","output":{"questions":[],"answers":[]},"synthetic":true}
-- state --
idle last=t2,failed,authentication prompt=p4,answered retry=abandoned,attempt=0,same=1,resumes=0,authentication
-- facts --
61 by=compaction message.accepted {"message":"m1","content":"go on"}
61 by=compaction turn.requested {"turn":"r1","cause":"message","message":"m1","prompts":["p4"]}
-- work turn --
turn: {"turn":"r1","cause":"message","message":"m1","content":"go on","attempt":1,"prompts":[{"prompt":"p4","seq":5,"status":"answered","by":"ada"}]}
