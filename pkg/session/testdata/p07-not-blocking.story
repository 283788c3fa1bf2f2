A prompt that does not block counts as pending and does not make the phase waiting (P7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"note","delivery":"callback","blocking":false}
-- pending --
p1
-- state phase --
phase: "running"
-- blocker p1 blocking --
blocking: false
-- request @4s --
stop {"by":"ada"}
-- result --
4 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
