A person's stop of the open turn takes back what was asked for beside it, and says nothing of turns before. When no turn is open, what
was taken back is the last turn, unless it would have been another attempt of that (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.completed {"turn":"t1"}
4 turn.started {"turn":"t2","cause":"message"}
5 by=compaction turn.requested {"turn":"t3","cause":"message","message":"m3"}
6 by=ledger turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
-- state pending last_turn --
pending: {"stop":{"turn":"t2","actor":"person","by":"ada","at":"@6s","seq":6}}
last_turn: {"id":"t1","outcome":"completed","at":"@3s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":3}
-- facts --
7 turn.stopped {"turn":"t2","actor":"person"}
8 by=compaction turn.requested {"turn":"t4","cause":"message","message":"m4"}
9 by=ledger turn.stop_requested {"turn":"t4","actor":"person","by":"ada"}
-- state pending last_turn --
pending: {"stop":{"turn":"t4","actor":"person","by":"ada","at":"@9s","seq":9}}
last_turn: {"id":"t4","outcome":"stopped","at":"@9s","message":"m4","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":9}
-- facts --
10 turn.started {"turn":"t5","cause":"message"}
11 turn.failed {"turn":"t5","error":{"kind":"x","text":"y"},"had_output":false}
12 by=retry turn.requested {"turn":"t6","cause":"resume","of_turn":"t5"}
13 by=ledger turn.stop_requested {"turn":"t6","actor":"person","by":"ada"}
-- state pending last_turn --
pending: {"stop":{"turn":"t6","actor":"person","by":"ada","at":"@13s","seq":13}}
last_turn: {"id":"t5","outcome":"failed","reason":"x","at":"@11s","error":{"kind":"x","text":"y"},"cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":11}
