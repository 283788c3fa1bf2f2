With resume hold, an answer that became a message while another question blocked continues the interrupted turn (P13,
R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"message","on_owner_loss":"keep","blocking":false}
2 prompt.requested {"prompt":"p3","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p2","answers":[],"by":"ada"}
5 by=ledger message.accepted {"message":"answer-uavdz6zzdvvxm2g47f6a","content":"x","synthetic":true}
-- decide --
(none)
-- facts --
9 session.claimed {"incarnation":"18"}
10 by=ledger prompt.dismissed {"prompt":"p3","by":"ada"}
-- owner --
alive
-- decide --
11 turn.requested {"turn":"turn-gdbxsruhpntw7rhb56dn","cause":"answer","of_turn":"t1","message":"answer-uavdz6zzdvvxm2g47f6a","prompt":"p2","prompts":["p3","p2"]}
-- state --
queued owned-by=18 last=t1,interrupted,owner-lost prompt=p2,answered prompt=p3,dismissed queued=answer-uavdz6zzdvvxm2g47f6a requested=turn-gdbxsruhpntw7rhb56dn,answer,of=t1,message=answer-uavdz6zzdvvxm2g47f6a
