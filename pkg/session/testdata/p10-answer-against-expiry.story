An answer and an expiry race: the first in the log counts, the other changes nothing, and a later asker gets the first
(P10).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"permission","delivery":"callback"}
3 prompt.requested {"prompt":"p2","kind":"permission","delivery":"callback"}
4 by=ledger prompt.answered {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
5 by=reconciler prompt.expired {"prompt":"p1","reason":"deadline"}
6 by=reconciler prompt.expired {"prompt":"p2","reason":"deadline"}
7 by=ledger prompt.answered {"prompt":"p2","answers":[],"by":"ada"}
-- ignored --
5: 1, the last prompt.expired by reconciler: closed-id
7: 1, the last prompt.answered by ledger: closed-id
-- endings --
4 prompt p1 answered
6 prompt p2 expired (deadline)
-- request --
answer {"prompt":"p2","answers":[],"by":"ada"}
-- result --
410 prompt p2 is expired (deadline): it can no longer be decided
  {"status":"expired","reason":"deadline","at":"@6s","seq":6,"prompt":"p2"}
