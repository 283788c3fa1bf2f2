The harness's view changes when another decision takes the place of one that was delivered, also between two looks (§3).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback"}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback"}
3 by=ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
-- changed --
blockers [p1 p2], work true
-- work prompts --
prompts: {"p1":{"status":"answered","by":"ada"}}
-- facts --
4 prompt.delivered {"prompt":"p1"}
5 by=ledger prompt.answered {"prompt":"p2","answers":[],"by":"ada"}
-- changed --
blockers [p1 p2], work true
-- work prompts --
prompts: {"p2":{"status":"answered","by":"ada"}}
