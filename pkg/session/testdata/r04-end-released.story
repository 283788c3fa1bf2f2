The end of a turn has its outcome: stopped by a shutdown, the session released (R4, R16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
3 prompt.withdrawn {"prompt":"p1","reason":"shutdown"}
3 turn.stopped {"turn":"t1","actor":"harness","reason":"shutdown"}
3 session.released {"reason":"shutdown"}
-- state phase last_turn owned left --
phase: "idle"
last_turn: {"id":"t1","outcome":"stopped","reason":"shutdown","at":"@3s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"harness","seq":3}
owned: false
left: "released"
-- endings --
3 prompt p1 withdrawn (shutdown)
3 turn t1 stopped (shutdown)
-- blocker p1 status reason by --
status: "withdrawn"
reason: "shutdown"
by: (nothing)
