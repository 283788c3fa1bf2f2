Stop while a blocking question is open is 409, names the prompt and changes nothing, unless forced (P21).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback"}
-- request --
stop {"by":"ada"}
-- result --
409 prompt p1 waits for an answer: answer, reject or dismiss it, or stop with force
  {"status":"waiting","reason":"a blocking prompt is open","at":"@3s","seq":3,"prompt":"p1"}
-- request @4s --
stop {"by":"ada","force":true,"reason":"enough"}
-- result --
4 turn.stop_requested {"turn":"t1","actor":"person","by":"ada","reason":"enough"}
-- work stop --
stop: {"turn":"t1","actor":"person","reason":"enough"}
-- facts --
5 turn.stopped {"turn":"t1","actor":"person"}
-- endings --
5 prompt p1 withdrawn (turn-ended)
5 turn t1 stopped
-- state phase last_turn --
phase: "idle"
last_turn: {"id":"t1","outcome":"stopped","at":"@5s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":5}
-- work --
(none)
