The folding and the deciding process may change at any commit: the log is the same, so the state is the same. (Each
story is folded a second time through a stored document after every commit, with all commits delivered again.) (R9, R19)

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
again 1
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback"}
again 2
4 source=/service/ledger/b by=ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
again 3
again 4
-- ignored --
(none)
-- state phase seq commits --
phase: "running"
seq: 4
commits: 4
