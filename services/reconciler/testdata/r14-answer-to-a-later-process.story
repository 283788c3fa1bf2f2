With resume hold, a later process asks outside of turns, and its asker gives up. The answer continues the interrupted
turn (P13, R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
4 session.claimed {"incarnation":"18"}
5 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
6 prompt.unattended {"prompt":"p1"}
7 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- owner --
alive
-- decide --
8 turn.requested {"turn":"turn-cvdrsiyaxxmztzqku525","cause":"answer","of_turn":"t1","message":"m1","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=18 last=t1,interrupted,owner-lost prompt=p1,answered requested=turn-cvdrsiyaxxmztzqku525,answer,of=t1,message=m1
