The ledger can close a session that was written to and never opened, and that is final. No other writer can, and a
harness that opens it first keeps it (§7, §2.4).

-- facts --
1 by=harness tool.started {"call":"c1","turn":"t1","name":"bash"}
2 by=harness session.closed {"reason":"finished"}
-- ignored --
1: 1, the last tool.started by harness: not-open
2: 1, the last session.closed by harness: not-open
-- state phase epoch closed --
phase: "idle"
epoch: 0
closed: (nothing)
-- facts --
3 by=ledger session.closed {"reason":"never-opened"}
-- state phase epoch closed --
phase: "closed"
epoch: 0
closed: {"reason":"never-opened","at":"@3s","seq":3}
-- facts --
4 session.opened {"incarnation":"18"}
-- ignored --
4: 1, the last session.opened by harness: closed
-- state phase epoch closed --
phase: "closed"
epoch: 0
closed: {"reason":"never-opened","at":"@3s","seq":3}
