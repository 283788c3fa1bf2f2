A stop of a turn that ended meanwhile waits for a receipt, from the process that ran it and no other: a new owner, a release, an orphaning drop it (§3, R18).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
4 turn.completed {"turn":"t1"}
-- state pending last_turn --
pending: {"stop":{"turn":"t1","actor":"person","by":"ada","at":"@3s","seq":3}}
last_turn: {"id":"t1","outcome":"completed","at":"@4s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":4}
-- work stop --
stop: {"turn":"t1","actor":"person"}
-- facts --
5 turn.stopped {"turn":"t1","actor":"person"}
-- work stop --
(none)
-- state pending last_turn --
pending: (nothing)
last_turn: {"id":"t1","outcome":"completed","at":"@4s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":4}
-- endings --
4 turn t1 completed
-- facts --
6 turn.stopped {"turn":"t1","actor":"person"}
-- ignored --
6: 1, the last turn.stopped by harness: closed-id
-- facts --
7 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- state pending --
pending: {"stop":{"turn":"t1","actor":"person","by":"ada","at":"@7s","seq":7}}
-- facts --
8 session.claimed {"incarnation":"18"}
-- state pending --
pending: (nothing)
-- facts --
9 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
10 session.released {}
-- state pending --
pending: (nothing)
-- facts --
11 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- state pending --
pending: (nothing)
-- facts --
12 session.claimed {"incarnation":"18"}
13 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
14 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"18"}
-- state pending --
pending: (nothing)
-- facts --
15 session.claimed {"incarnation":"19"}
16 turn.started {"turn":"t2","cause":"message"}
17 by=compaction turn.stop_requested {"turn":"t2","actor":"stall"}
18 session.claimed {"incarnation":"20"}
-- state pending --
pending: {"stop":{"turn":"t2","actor":"stall","at":"@17s","seq":17}}
-- facts --
19 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"20"}
-- state pending --
pending: {"stop":{"turn":"t2","actor":"stall","at":"@17s","seq":17}}
-- facts --
20 by=reconciler turn.interrupted {"turn":"t2","reason":"owner-lost"}
-- state pending last_turn --
pending: (nothing)
last_turn: {"id":"t2","outcome":"interrupted","reason":"owner-lost","at":"@20s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"stall","seq":20}
