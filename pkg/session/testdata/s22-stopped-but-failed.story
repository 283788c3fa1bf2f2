A turn that a person has asked to stop and that ends otherwise is marked as stopped by that person; so is one that failed a moment before the stop (§2.2, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m-t1"}
3 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- state last_turn pending --
last_turn: {"id":"t1","outcome":"failed","reason":"server_error","at":"@4s","error":{"kind":"server_error","text":"x"},"message":"m-t1","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":4}
pending: {"stop":{"turn":"t1","actor":"person","by":"ada","at":"@3s","seq":3}}
-- facts --
5 turn.stopped {"turn":"t1","actor":"person"}
-- state last_turn --
last_turn: {"id":"t1","outcome":"failed","reason":"server_error","at":"@4s","error":{"kind":"server_error","text":"x"},"message":"m-t1","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":4}
-- facts --
6 turn.started {"turn":"t2","cause":"message","message":"m-t2"}
7 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- request @8s --
stop {"by":"ada"}
-- result --
8 turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
-- state last_turn retry --
last_turn: {"id":"t2","outcome":"failed","reason":"server_error","at":"@7s","error":{"kind":"server_error","text":"x"},"message":"m-t2","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":7}
retry: {"attempt":0,"error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":0}
-- request --
stop {"by":"ada"}
-- result --
nothing to append, see 8
