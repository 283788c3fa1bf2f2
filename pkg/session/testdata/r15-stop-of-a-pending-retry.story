A stop while a retry is about to start takes the retry back; the failed turn stays the last one, marked as stopped by a person (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
4 by=retry turn.requested {"turn":"t2","cause":"retry","of_turn":"t1","attempt":2}
-- state phase retry --
phase: "retrying"
retry: {"state":"starting","turn":"t1","attempt":2,"error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":0}
-- request @5s --
stop {"by":"ada"}
-- result --
5 turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
-- state phase retry last_turn pending --
phase: "idle"
retry: {"state":"abandoned","turn":"t1","attempt":2,"reason":"stopped","error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":0}
last_turn: {"id":"t1","outcome":"failed","reason":"server_error","at":"@3s","error":{"kind":"server_error","text":"x"},"cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":3}
pending: {"stop":{"turn":"t2","actor":"person","by":"ada","at":"@5s","seq":5}}
