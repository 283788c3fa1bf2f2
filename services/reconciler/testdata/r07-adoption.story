A new incarnation claims the session and asks one of two callback prompts again: that prompt, its call and its turn stay
with it; the other one is recovered when the new owner is ready, and not before (R7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"edit"}
4 tool.started {"call":"c2","turn":"t1","name":"edit"}
5 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"callback"}
6 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"permission","delivery":"callback"}
7 session.claimed {"incarnation":"18"}
7 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"callback"}
-- owner --
starting @20s
-- decide @10s --
look @20s
-- owner --
alive
-- decide --
8 prompt.expired {"prompt":"p2","reason":"owner-lost"}
8 tool.interrupted {"call":"c2","reason":"owner-lost","outcome":"unknown"}
-- state --
waiting owned-by=18 turn=t1,message call=c1 prompt=p1,awaiting
