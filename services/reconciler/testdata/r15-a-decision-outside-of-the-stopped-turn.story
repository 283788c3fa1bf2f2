A person stops a turn, and then answers a question that was asked outside of it, which no Ask waits for. The turn that
recovery requests for the answer does not repeat the stopped turn: it has no message (R15, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 turn.stopped {"turn":"t1","actor":"person"}
6 prompt.unattended {"prompt":"p1"}
7 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- owner --
alive
-- decide @60s --
8 turn.requested {"turn":"turn-qf24l5pc6nngiuc7xji3","cause":"answer","options":{"model":"big"},"prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=17 last=t1,stopped prompt=p1,answered requested=turn-qf24l5pc6nngiuc7xji3,answer
