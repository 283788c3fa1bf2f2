A person stops a turn, and answers a question after that. The turn that recovery requests for the answer starts before
the harness has confirmed the stop: it is newer than the stop, and runs (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 turn.started {"turn":"t1","cause":"message","synthetic":true}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 prompt.unattended {"prompt":"p0"}
6 by=ledger prompt.answered {"prompt":"p0","answers":[],"by":"ada","owed":true}
7 turn.completed {"turn":"t1"}
8 by=reconciler turn.requested {"turn":"t2","cause":"answer","prompt":"p0","prompts":["p0"]}
9 turn.started {"turn":"t2","cause":"answer","prompt":"p0"}
-- state --
running owned-by=17 turn=t2,answer last=t1,completed prompt=p0,answered stop=t1,person
