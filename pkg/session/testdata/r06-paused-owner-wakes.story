The paused harness wakes after its session was taken over: should one of its commits slip in, nothing of it counts (R6).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 tool.started {"call":"c1","turn":"t1","name":"bash"}
4 session.released {}
-- ignored --
4: 2, the last session.released by harness: not-owner
-- facts --
5 session.claimed {"incarnation":"18"}
6 epoch=1 inc=17 tool.started {"call":"c1","turn":"t1","name":"bash"}
7 epoch=2 inc=17 tool.started {"call":"c1","turn":"t1","name":"bash"}
8 epoch=2 inc=17 session.closed {"reason":"finished"}
9 epoch=3 inc=17 session.claimed {"incarnation":"17"}
10 unguarded epoch=1 inc=17 turn.completed {"turn":"t1"}
-- ignored --
6: 1, the last tool.started by harness: epoch
7: 1, the last tool.started by harness: source
8: 1, the last session.closed by harness: source
9: 1, the last session.claimed by harness: claim-refused
10: 1, the last turn.completed by harness: epoch
-- state phase epoch incarnation owned tools turn --
phase: "interrupted"
epoch: 2
incarnation: "18"
owned: true
tools: (nothing)
turn: {"id":"t1","cause":"message","synthetic":false,"since":"@2s","attempt":1,"epoch":1}
