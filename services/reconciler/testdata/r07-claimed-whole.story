A new incarnation claims the session and adopts nothing: everything of the old epoch is recovered, and the incarnation
keeps the session (R7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
4 tool.started {"call":"ask","turn":"t1","name":"question"}
5 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
6 prompt.requested {"prompt":"p2","turn":"t1","call":"c1","kind":"permission","delivery":"callback"}
7 session.claimed {"incarnation":"18"}
-- owner --
alive
-- decide @10s --
8 prompt.expired {"prompt":"p2","reason":"owner-lost"}
8 tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
-- state --
waiting owned-by=18 turn=t1,message call=ask prompt=p1,awaiting
