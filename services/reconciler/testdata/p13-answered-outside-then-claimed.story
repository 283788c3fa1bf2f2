A question outside of any turn is answered, its asker dies, and a new incarnation claims the session before recovery.
The answer belongs to the former epoch, so no process reads it in its view. Recovery requests a turn for the answer as
soon as the new owner is ready, and once (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.completed {"turn":"t1"}
4 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","questions":[{"id":"q","question":"Which?"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
6 session.claimed {"incarnation":"18"}
-- owner --
starting @20s
-- decide @10s --
look @20s
-- owner --
alive
-- decide --
7 turn.requested {"turn":"turn-6esm2htnyahzgxkuevnd","cause":"answer","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=18 last=t1,completed prompt=p1,answered requested=turn-6esm2htnyahzgxkuevnd,answer
-- decide --
(none)
