Two answers wait for the next attempt of a turn: one has a receipt of a process that failed since, the other has none.
Before the retry, the agent starts a turn without a request, which names neither. Both stay undelivered: when that turn
has completed, a turn is requested that names both (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"When?"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
6 prompt.delivered {"prompt":"p1"}
7 by=ledger prompt.answered {"owed":true,"prompt":"p2","answers":[{"question":"q","selected":[],"text":"now"}],"by":"user-1"}
8 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"later"},"had_output":false}
9 turn.started {"turn":"own","cause":"message","synthetic":true}
-- owner --
alive
-- decide --
(none)
-- facts --
10 turn.completed {"turn":"own"}
-- decide --
11 turn.requested {"turn":"turn-z4pu5kbddf3wxrrinyn4","cause":"answer","prompt":"p1","prompts":["p1","p2"]}
-- state --
queued owned-by=17 last=own,completed prompt=p2,answered requested=turn-z4pu5kbddf3wxrrinyn4,answer
