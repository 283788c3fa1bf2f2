The end of a turn has its outcome: completed (R4).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.completed {"turn":"t1","finish":"stop"}
-- state phase last_turn owned left --
phase: "idle"
last_turn: {"id":"t1","outcome":"completed","reason":"stop","at":"@3s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":3}
owned: true
left: (nothing)
