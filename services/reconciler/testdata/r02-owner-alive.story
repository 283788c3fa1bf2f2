Nothing is taken from an owner that may be alive, even if other processes died (R2, N4).

-- facts --
1 session.opened {"incarnation":"18"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"callback"}
-- owner --
alive
-- decide @4000s --
(none)
-- state --
waiting owned-by=18 turn=t1,message call=c1 prompt=p1,awaiting
