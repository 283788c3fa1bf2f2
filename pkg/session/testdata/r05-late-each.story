A fact is late if it arrives after recovery closed its item, from any writer; or from an earlier epoch; or from a
process that has left. A fact that the owner repeats is not late (R5, §2.5).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
2 tool.started {"call":"c2","turn":"t1","name":"bash"}
2 tool.started {"call":"c3","turn":"t1","name":"bash"}
2 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
3 tool.completed {"call":"c2"}
3 tool.completed {"call":"c3"}
4 tool.completed {"call":"c3"}
5 by=reconciler prompt.expired {"prompt":"p1","reason":"deadline"}
6 prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
-- endings --
3 tool c2 completed
3 tool c3 completed
5 prompt p1 expired (deadline) late 6
-- facts --
7 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 by=reconciler tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
8 session.claimed {"incarnation":"18"}
9 tool.completed {"call":"c1"}
10 epoch=1 inc=17 tool.completed {"call":"c2"}
11 tool.started {"call":"c4","turn":"t1","name":"bash"}
12 tool.completed {"call":"c4"}
13 session.released {}
14 tool.completed {"call":"c4"}
-- endings --
3 tool c2 completed late 10
3 tool c3 completed
5 prompt p1 expired (deadline) late 6
7 tool c1 interrupted (owner-lost) late 9
12 tool c4 completed late 14
-- ignored --
4: 1, the last tool.completed by harness: closed-id
6: 1, the last prompt.answered by harness: closed-id
9: 1, the last tool.completed by harness: closed-id
10: 1, the last tool.completed by harness: epoch
14: 1, the last tool.completed by harness: not-owner
