A turn with a person's stop request is not stopped again for a compaction (C5, R15).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- decide --
(none)
