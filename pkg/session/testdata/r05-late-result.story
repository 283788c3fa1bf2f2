A result that arrives after recovery closed its call is recorded as late on that ending; it does not reopen it and is no second result (R5, §2.5).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
2 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 by=reconciler prompt.expired {"prompt":"p1","reason":"owner-lost"}
3 by=reconciler tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
3 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
4 tool.completed {"call":"c1","output":"done after all"}
-- ignored --
4: 1, the last tool.completed by harness: not-owner
-- endings --
3 prompt p1 expired (owner-lost)
3 tool c1 interrupted (owner-lost) late 4
3 turn t1 interrupted (owner-lost)
-- state tools phase --
tools: (nothing)
phase: "interrupted"
-- facts --
5 session.claimed {"incarnation":"18"}
6 epoch=1 inc=17 turn.completed {"turn":"t1"}
7 epoch=1 inc=17 prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
8 epoch=1 inc=17 tool.failed {"call":"c1","error":{"kind":"x","text":"y"}}
-- ignored --
6: 1, the last turn.completed by harness: epoch
7: 1, the last prompt.answered by harness: epoch
8: 1, the last tool.failed by harness: epoch
-- endings --
3 prompt p1 expired (owner-lost) late 7
3 tool c1 interrupted (owner-lost) late 4
3 turn t1 interrupted (owner-lost) late 6
-- state phase last_turn --
phase: "interrupted"
last_turn: {"id":"t1","outcome":"interrupted","reason":"owner-lost","at":"@3s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":3}
-- feed --
1 session.opened s
2 turn.started t1
2 tool.started c1
2 prompt.requested p1
3 session.orphaned s
3 prompt.expired p1
3 tool.interrupted c1
3 turn.interrupted t1
5 session.claimed s
