Opened is epoch 1, claimed the old one + 1, and their incarnation is that of their source; else they are ignored (§2.5).

-- facts --
1 inc=16 session.opened {"incarnation":"17"}
2 epoch=2 session.opened {"incarnation":"17"}
3 epoch=1 session.claimed {"incarnation":"17"}
4 turn.started {"turn":"t1","cause":"message"}
-- ignored --
1: 1, the last session.opened by harness: source
2: 1, the last session.opened by harness: epoch
3: 1, the last session.claimed by harness: not-open
4: 1, the last turn.started by harness: not-open
-- state phase epoch seq --
phase: "idle"
epoch: 0
seq: 4
-- facts --
5 session.opened {"incarnation":"17"}
6 session.opened {"incarnation":"17"}
7 epoch=1 session.claimed {"incarnation":"18"}
8 epoch=3 session.claimed {"incarnation":"18"}
9 epoch=2 inc=17 session.claimed {"incarnation":"18"}
10 epoch=9 turn.started {"turn":"t1","cause":"message"}
-- ignored --
6: 1, the last session.opened by harness: already-open
7: 1, the last session.claimed by harness: epoch
8: 1, the last session.claimed by harness: epoch
9: 1, the last session.claimed by harness: source
10: 1, the last turn.started by harness: epoch
-- state epoch incarnation --
epoch: 1
incarnation: "17"
-- facts --
11 session.claimed {"incarnation":"18"}
12 turn.started {"turn":"t1","cause":"message"}
-- state epoch incarnation phase --
epoch: 2
incarnation: "18"
phase: "running"
