A close for an id that never opened is ignored and counted, and leaves no state; a later request of that id opens it (P2).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.withdrawn {"prompt":"p1","reason":"shutdown"}
3 by=ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
-- ignored --
2: 1, the last prompt.withdrawn by harness: unknown
3: 1, the last prompt.answered by ledger: unknown
-- endings --
(none)
-- pending --
(none)
-- facts --
4 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback"}
-- pending --
p1
-- ignored --
(none)
