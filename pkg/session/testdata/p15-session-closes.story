Closing a session closes everything open in it, and is final (P15, R10, §2.1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
2 tool.started {"call":"c2","turn":"t1","name":"serve","background":true}
2 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"message"}
3 by=compaction message.accepted {"message":"m1","content":"x","synthetic":true}
3 by=compaction compaction.requested {"compaction":"k1","reason":"manual","used":1,"limit":2}
3 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m1"}
4 prompt.requested {"prompt":"p3","turn":"t1","kind":"question","delivery":"callback"}
5 by=ledger prompt.answered {"prompt":"p3","answers":[],"by":"ada"}
-- feed --
1 session.opened s
2 turn.started t1
2 tool.started c1
2 tool.started c2
2 prompt.requested p1
2 prompt.requested p2
3 message.accepted m1
3 compaction.requested k1
3 turn.requested t2
4 prompt.requested p3
5 prompt.answered p3
-- request @6s --
close {"reason":"archived","by":"ada"}
-- result --
6 session.closed {"reason":"archived","by":"ada"}
-- feed --
6 session.closed s
6 message.withdrawn m1 derived {"message":"m1","by":"ada"}
6 compaction.failed k1 derived {"compaction":"k1","error":{"kind":"session-closed","text":""}}
6 tool.failed c2 derived {"call":"c2","error":{"kind":"ended-with-session","text":""},"synthetic":true}
6 prompt.withdrawn p2 derived {"prompt":"p2","reason":"session-closed"}
6 turn.stopped t1 derived {"turn":"t1","actor":"","reason":"session-closed"}
6 tool.failed c1 derived {"call":"c1","error":{"kind":"ended-with-turn","text":""},"synthetic":true}
6 prompt.withdrawn p1 derived {"prompt":"p1","reason":"turn-ended"}
-- state --
closed last=t1,stopped,session-closed
-- pending --
(none)
-- work --
(none)
-- request --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
410 prompt p1 is withdrawn (turn-ended): it can no longer be decided
  {"status":"withdrawn","reason":"turn-ended","at":"@6s","seq":6,"prompt":"p1"}
-- request --
answer {"prompt":"p9","answers":[],"by":"ada"}
-- result --
409 the session is closed (archived): open another one
  {"status":"closed","reason":"archived","by":"ada","at":"@6s","seq":6}
-- request --
stop {"by":"ada"}
-- result --
409 the session is closed (archived): open another one
  {"status":"closed","reason":"archived","by":"ada","at":"@6s","seq":6}
-- request --
configure {"policy":{"auto_retry":false},"by":"ada"}
-- result --
409 the session is closed (archived): open another one
  {"status":"closed","reason":"archived","by":"ada","at":"@6s","seq":6}
-- request @7s --
close {"reason":"deleted","by":"bob"}
-- result --
nothing to append, see 6
-- facts --
7 turn.completed {"turn":"t1"}
8 session.claimed {"incarnation":"18"}
9 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- ignored --
7: 1, the last turn.completed by harness: closed
8: 1, the last session.claimed by harness: closed
9: 1, the last turn.interrupted by reconciler: closed
-- claimable 17 18 --
17 false
18 false
