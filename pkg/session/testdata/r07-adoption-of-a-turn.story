A turn or a call with an open id under a newer epoch is adopted: it continues where it was (R7, §2.3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","options":{"n":1}}
2 tool.started {"call":"c1","turn":"t1","name":"bash","title":"make"}
3 session.claimed {"incarnation":"18"}
-- state phase epoch --
phase: "interrupted"
epoch: 2
-- facts --
4 turn.started {"turn":"t1","cause":"message"}
5 tool.started {"call":"c1","turn":"t1","name":"bash"}
6 turn.started {"turn":"t1","cause":"message"}
-- state phase turn tools last_turn --
phase: "running"
turn: {"id":"t1","cause":"message","synthetic":false,"since":"@2s","attempt":1,"epoch":2,"options":{"n":1}}
tools: {"c1":{"name":"bash","title":"make","turn":"t1","since":"@2s","epoch":2,"background":false}}
last_turn: (nothing)
-- ignored --
6: 1, the last turn.started by harness: already-open-id
-- facts --
7 turn.completed {"turn":"t1"}
8 turn.started {"turn":"t1","cause":"message"}
9 tool.started {"call":"c1","turn":"t1","name":"bash"}
10 tool.started {"call":"c9","turn":"t1","name":"bash"}
-- ignored --
8: 1, the last turn.started by harness: closed-id
9: 1, the last tool.started by harness: closed-id
10: 1, the last tool.started by harness: turn-ended
-- state phase turn tools --
phase: "idle"
turn: (nothing)
tools: (nothing)
