The first commit that the log still has names a predecessor: the session was closed and purged, and is closed for good (§2.4).

-- facts --
77 @1s guard=70 by=ledger session.closed {"reason":"archived","by":"ada"}
-- parked --
77: gap, its writer had seen 70
-- ignored --
77: 1, the last session.closed by ledger: closed
-- state --
closed
-- facts --
78 @2s session.opened {"incarnation":"17"}
79 @3s epoch=2 inc=17 tool.started {"call":"c1","name":"x"}
-- ignored --
78: 1, the last session.opened by harness: closed
79: 1, the last tool.started by harness: closed
-- claimable 17 --
17 false
-- request --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
409 the session is closed (purged): open another one
  {"status":"closed","reason":"purged","at":"@1s","seq":77}
-- request --
close {"by":"ada"}
-- result --
nothing to append, see 77
