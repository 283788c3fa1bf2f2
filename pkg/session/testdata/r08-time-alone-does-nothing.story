However long the log was silent, time alone ends nothing: only facts do (R8).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","deadline":"@600s"}
4 @32403s tool.started {"call":"c1","turn":"t1","name":"bash"}
-- state phase owned epoch --
phase: "waiting"
owned: true
epoch: 1
-- pending --
p1
