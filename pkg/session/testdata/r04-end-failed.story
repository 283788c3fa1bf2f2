The end of a turn has its outcome: failed (R4).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"overloaded","status":529},"had_output":true}
-- state phase last_turn retry owned left --
phase: "idle"
last_turn: {"id":"t1","outcome":"failed","reason":"server_error","at":"@3s","error":{"kind":"server_error","text":"overloaded","status":529},"cause":"message","attempt":1,"synthetic":false,"had_output":true,"seq":3}
retry: {"attempt":0,"error":{"kind":"server_error","text":"overloaded","status":529},"same_failures":1,"resumes":0}
owned: true
left: (nothing)
