A clean stop: open items end with reason shutdown at once, a callback prompt is withdrawn, not expired, and prompts that
a person can still answer stay (R16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"edit"}
4 tool.started {"call":"ask","turn":"t1","name":"question"}
5 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"callback"}
6 prompt.requested {"prompt":"p2","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
7 session.released {"reason":"shutdown"}
-- decide @8s --
8 prompt.withdrawn {"prompt":"p1","reason":"shutdown"}
8 tool.interrupted {"call":"c1","reason":"shutdown","outcome":"unknown"}
-- state --
waiting turn=t1,message call=ask prompt=p2,awaiting
