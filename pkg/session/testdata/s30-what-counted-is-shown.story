A view shows what counted of a commit, and nothing else that stands in it (§3, P1).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","title":"older"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","title":"newer"}
2 epoch=2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","title":"of another epoch"}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","title":"another prompt"}
2 prompt.requested {"prompt":"p3","kind":"question","delivery":"callback","title":"answered at once"}
2 prompt.answered {"prompt":"p3","answers":[{"question":"q","selected":[],"text":"yes"}],"by":"ada"}
2 prompt.requested {"prompt":"p3","kind":"question","delivery":"callback","title":"asked too late"}
-- ignored --
2: 2, the last prompt.requested by harness: closed-id
-- blocker p1 title status --
title: "newer"
status: "awaiting"
-- blocker p3 title status answers by --
title: "answered at once"
status: "answered"
answers: [{"question":"q","selected":[],"text":"yes"}]
by: "ada"
-- facts --
3 by=ledger prompt.rejected {"prompt":"p2","text":"no","by":"bob"}
3 by=ledger epoch=2 prompt.dismissed {"prompt":"p1","by":"cyd"}
3 by=ledger epoch=2 prompt.rejected {"prompt":"p1","text":"never","by":"dan"}
3 by=ledger prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"well"}],"by":"ada"}
-- ignored --
3: 2, the last prompt.rejected by ledger: epoch
-- blocker p1 status answers by --
status: "answered"
answers: [{"question":"q","selected":[],"text":"well"}]
by: "ada"
-- blocker p2 status answers by --
status: "rejected"
answers: (nothing)
by: "bob"
-- work prompts --
prompts: {"p1":{"status":"answered","answers":[{"question":"q","selected":[],"text":"well"}],"by":"ada"},"p2":{"status":"rejected","text":"no","by":"bob","reason":"no"}}
-- facts --
4 prompt.requested {"prompt":"p4","kind":"question","delivery":"callback"}
5 by=ledger epoch=2 prompt.answered {"prompt":"p4","answers":[],"by":"eve"}
5 by=ledger prompt.dismissed {"prompt":"p4","by":"ada"}
-- ignored --
5: 1, the last prompt.answered by ledger: epoch
-- blocker p4 status by --
status: "dismissed"
by: "ada"
-- facts --
6 prompt.withdrawn {"prompt":"p6","reason":"never asked"}
6 prompt.requested {"prompt":"p6","kind":"question","delivery":"callback","title":"asked after all"}
6 prompt.requested {"prompt":"p7","kind":"question","delivery":"callback"}
-- ignored --
6: 1, the last prompt.withdrawn by harness: unknown
-- blocker p6 title status --
title: "asked after all"
status: "awaiting"
-- facts --
7 by=ledger prompt.answered {"prompt":"p6","answers":[{"question":"q","selected":[],"text":"six"}],"by":"ada"}
7 by=ledger prompt.answered {"prompt":"p7","answers":[{"question":"q","selected":[],"text":"seven"}],"by":"bob"}
-- blocker p6 answers by --
answers: [{"question":"q","selected":[],"text":"six"}]
by: "ada"
-- blocker p7 answers by --
answers: [{"question":"q","selected":[],"text":"seven"}]
by: "bob"
-- facts --
8 prompt.requested {"prompt":"p5","kind":"question","delivery":"callback"}
9 by=ledger epoch=2 prompt.answered {"prompt":"p5","answers":[],"by":"eve"}
9 by=ledger prompt.rejected {"prompt":"p5","text":"no","by":"ada"}
-- ignored --
9: 1, the last prompt.answered by ledger: epoch
-- work prompts --
prompts: {"p1":{"status":"answered","answers":[{"question":"q","selected":[],"text":"well"}],"by":"ada"},"p2":{"status":"rejected","text":"no","by":"bob","reason":"no"},"p4":{"status":"dismissed","by":"ada"},"p5":{"status":"rejected","text":"no","by":"ada","reason":"no"},"p6":{"status":"answered","answers":[{"question":"q","selected":[],"text":"six"}],"by":"ada"},"p7":{"status":"answered","answers":[{"question":"q","selected":[],"text":"seven"}],"by":"bob"}}
