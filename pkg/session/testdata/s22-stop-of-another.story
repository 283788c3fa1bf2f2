A stop is of the open turn, of one that has ended, or of the one that is asked for; of any other it is unknown. A stop of a turn before
the last says nothing of the last (§2.2, T11).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.completed {"turn":"t1"}
4 turn.started {"turn":"t2","cause":"message"}
5 by=ledger turn.stop_requested {"turn":"t9","actor":"person","by":"ada"}
-- ignored --
5: 1, the last turn.stop_requested by ledger: unknown
-- state pending --
pending: (nothing)
-- facts --
6 turn.failed {"turn":"t2","error":{"kind":"x","text":"y"},"had_output":false}
7 by=compaction turn.requested {"turn":"t3","cause":"message"}
8 by=ledger turn.stop_requested {"turn":"t9","actor":"person","by":"ada"}
-- ignored --
8: 1, the last turn.stop_requested by ledger: unknown
-- state pending last_turn --
pending: {"turn":{"turn":"t3","cause":"message","attempt":0,"at":"@7s","seq":7}}
last_turn: {"id":"t2","outcome":"failed","reason":"x","at":"@6s","error":{"kind":"x","text":"y"},"cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":6}
-- facts --
9 turn.started {"turn":"t3","cause":"message"}
10 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- state pending last_turn --
pending: {"stop":{"turn":"t1","actor":"person","by":"ada","at":"@10s","seq":10}}
last_turn: {"id":"t2","outcome":"failed","reason":"x","at":"@6s","error":{"kind":"x","text":"y"},"cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":6}
-- facts --
11 turn.failed {"turn":"t3","error":{"kind":"x","text":"y"},"had_output":false}
-- state pending last_turn --
pending: {"stop":{"turn":"t1","actor":"person","by":"ada","at":"@10s","seq":10}}
last_turn: {"id":"t3","outcome":"failed","reason":"x","at":"@11s","error":{"kind":"x","text":"y"},"cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":11}
-- facts --
12 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- state last_turn --
last_turn: {"id":"t3","outcome":"failed","reason":"x","at":"@11s","error":{"kind":"x","text":"y"},"cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":11}
