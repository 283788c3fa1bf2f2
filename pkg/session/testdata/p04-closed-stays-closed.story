A closed id stays closed: a late copy of its request, or a new request under it, is ignored, so an answer always meets the opening it was given for (P4).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","title":"Drop the table?"}
3 by=ledger prompt.rejected {"prompt":"p1","by":"ada"}
4 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","title":"Make a backup?"}
-- ignored --
4: 1, the last prompt.requested by harness: closed-id
-- blocker p1 title status by --
title: "Drop the table?"
status: "rejected"
by: "ada"
-- facts --
5 prompt.delivered {"prompt":"p1"}
6 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","title":"Make a backup?"}
again 2
-- ignored --
6: 1, the last prompt.requested by harness: closed-id
-- pending --
(none)
-- request --
answer {"prompt":"p1","answers":[],"by":"bob"}
-- result --
409 prompt p1 was rejected by ada already
  {"status":"rejected","by":"ada","at":"@3s","seq":3,"prompt":"p1"}
