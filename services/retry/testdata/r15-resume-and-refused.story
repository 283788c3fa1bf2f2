A person resumes a stopped session for two decisions from before the stop. The process refuses one of them.
The requested turn stays for the other (R15, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
4 by=ledger prompt.answered {"owed":true,"prompt":"p2","answers":[],"by":"ada"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
7 turn.stopped {"turn":"t1","actor":"person"}
8 session.claimed {"incarnation":"18"}
-- request --
resume {"by":"ada"}
-- result --
9 turn.requested {"turn":"turn-23hrg46hkjfwlx7bvphv","cause":"answer","prompt":"p2","prompts":["p2","p1"]}
-- facts --
10 prompt.delivered {"prompt":"p2","refused":"no"}
-- state --
queued owned-by=18 last=t1,stopped prompt=p1,answered requested=turn-23hrg46hkjfwlx7bvphv,answer
