A decision about a prompt that is settled and gone gets closed as the refusal, not unknown (§2.4, P4).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback"}
3 prompt.withdrawn {"prompt":"p1","reason":"x"}
4 by=ledger prompt.dismissed {"prompt":"p1","by":"ada"}
5 by=ledger prompt.dismissed {"prompt":"p2","by":"ada"}
-- ignored --
4: 1, the last prompt.dismissed by ledger: closed-id
5: 1, the last prompt.dismissed by ledger: unknown
