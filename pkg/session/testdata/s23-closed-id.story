Under a closed id nothing opens again (§2.3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
2 prompt.requested {"prompt":"p1","kind":"permission","delivery":"callback"}
3 tool.completed {"call":"c1"}
3 prompt.withdrawn {"prompt":"p1","reason":"done"}
4 tool.started {"call":"c1","turn":"t1","name":"bash"}
5 prompt.requested {"prompt":"p1","kind":"permission","delivery":"callback"}
6 prompt.requested {"prompt":"p2","call":"c1","kind":"permission","delivery":"callback"}
7 by=retry turn.requested {"turn":"t1","cause":"retry"}
8 turn.completed {"turn":"t1"}
9 by=retry turn.requested {"turn":"t1","cause":"retry"}
10 prompt.requested {"prompt":"p3","turn":"t1","kind":"permission","delivery":"callback"}
-- ignored --
4: 1, the last tool.started by harness: closed-id
5: 1, the last prompt.requested by harness: closed-id
6: 1, the last prompt.requested by harness: closed-id
7: 1, the last turn.requested by retry: closed-id
9: 1, the last turn.requested by retry: closed-id
10: 1, the last prompt.requested by harness: turn-ended
-- state phase --
phase: "idle"
