After a kill everything that was open is closed once, each with a reason, behind a fence (R1, R3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
2 tool.started {"call":"c2","turn":"t1","name":"task"}
2 tool.started {"call":"c3","turn":"t1","name":"serve","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"callback"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 by=reconciler prompt.expired {"prompt":"p1","reason":"owner-lost"}
4 by=reconciler tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
4 by=reconciler tool.interrupted {"call":"c2","reason":"owner-lost","outcome":"unknown"}
4 by=reconciler tool.interrupted {"call":"c3","reason":"owner-lost","outcome":"unknown"}
4 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state phase owned left tools prompts turn last_turn --
phase: "interrupted"
owned: false
left: "orphaned"
tools: (nothing)
prompts: (nothing)
turn: (nothing)
last_turn: {"id":"t1","outcome":"interrupted","reason":"owner-lost","at":"@4s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":4}
-- endings --
4 prompt p1 expired (owner-lost)
4 tool c1 interrupted (owner-lost)
4 tool c2 interrupted (owner-lost)
4 tool c3 interrupted (owner-lost)
4 turn t1 interrupted (owner-lost)
-- feed --
1 session.opened s
2 turn.started t1
2 tool.started c1
2 tool.started c2
2 tool.started c3
3 prompt.requested p1
4 session.orphaned s
4 prompt.expired p1
4 tool.interrupted c1
4 tool.interrupted c2
4 tool.interrupted c3
4 turn.interrupted t1
-- facts --
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 by=reconciler tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
5 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- ignored --
5: 2, the last turn.interrupted by reconciler: closed-id
-- endings turn --
4 turn t1 interrupted (owner-lost)
