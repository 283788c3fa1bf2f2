Every end of a turn closes its open prompts and calls (P15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
2 tool.started {"call":"c2","turn":"t1","name":"ask"}
2 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
2 prompt.requested {"prompt":"p2","call":"c2","kind":"question","delivery":"tool-result"}
-- feed --
1 session.opened s
2 turn.started t1
2 tool.started c1
2 tool.started c2
2 prompt.requested p1
2 prompt.requested p2
-- facts --
3 turn.stopped {"turn":"t1","actor":"person"}
-- feed --
3 turn.stopped t1
3 tool.failed c1 derived {"call":"c1","error":{"kind":"ended-with-turn","text":""},"synthetic":true}
3 tool.failed c2 derived {"call":"c2","error":{"kind":"ended-with-turn","text":""},"synthetic":true}
3 prompt.withdrawn p1 derived {"prompt":"p1","reason":"turn-ended"}
3 prompt.withdrawn p2 derived {"prompt":"p2","reason":"turn-ended"}
-- endings --
3 tool c1 ended-with-turn (turn-ended)
3 tool c2 ended-with-turn (turn-ended)
3 prompt p1 withdrawn (turn-ended)
3 prompt p2 withdrawn (turn-ended)
3 turn t1 stopped
-- state phase tools prompts --
phase: "idle"
tools: (nothing)
prompts: (nothing)
-- facts --
4 turn.started {"turn":"t2","cause":"message"}
4 prompt.requested {"prompt":"p3","turn":"t2","kind":"permission","delivery":"callback"}
5 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
6 turn.started {"turn":"t3","cause":"message"}
6 prompt.requested {"prompt":"p4","turn":"t3","kind":"permission","delivery":"callback"}
7 by=reconciler turn.interrupted {"turn":"t3","reason":"owner-lost"}
8 turn.started {"turn":"t4","cause":"message"}
8 prompt.requested {"prompt":"p5","turn":"t4","kind":"permission","delivery":"callback"}
9 turn.completed {"turn":"t4"}
-- endings prompt --
3 prompt p1 withdrawn (turn-ended)
3 prompt p2 withdrawn (turn-ended)
5 prompt p3 withdrawn (turn-ended)
7 prompt p4 withdrawn (turn-ended)
9 prompt p5 withdrawn (turn-ended)
-- pending --
(none)
