The end of a turn has its outcome: stopped by a person (R4).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
-- request @3s --
stop {"by":"ada","reason":"wrong branch"}
-- result --
3 turn.stop_requested {"turn":"t1","actor":"person","by":"ada","reason":"wrong branch"}
-- work stop --
stop: {"turn":"t1","actor":"person","reason":"wrong branch"}
-- facts --
4 turn.stopped {"turn":"t1","actor":"person","reason":"wrong branch"}
-- state phase last_turn pending owned left --
phase: "idle"
last_turn: {"id":"t1","outcome":"stopped","reason":"wrong branch","at":"@4s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":4}
pending: (nothing)
owned: true
left: (nothing)
