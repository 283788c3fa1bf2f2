A stop by the system takes no request back; a stop of one turn is not received by the end of another; a turn that stops
without an actor was stopped by the requester (§2.2, §3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=retry turn.requested {"turn":"t2","cause":"retry"}
4 by=compaction turn.stop_requested {"turn":"t1","actor":"compaction"}
-- state pending --
pending: {"turn":{"turn":"t2","cause":"retry","attempt":0,"at":"@3s","seq":3},"stop":{"turn":"t1","actor":"compaction","at":"@4s","seq":4}}
-- facts --
5 turn.started {"turn":"t2","cause":"retry","synthetic":true}
6 turn.stopped {"turn":"t2","actor":"harness"}
-- state pending last_turn --
pending: {"stop":{"turn":"t1","actor":"compaction","at":"@4s","seq":4}}
last_turn: {"id":"t2","outcome":"stopped","at":"@6s","cause":"retry","attempt":1,"synthetic":true,"had_output":false,"actor":"harness","seq":6}
-- facts --
7 turn.stopped {"turn":"t1","actor":"compaction"}
-- state pending last_turn --
pending: (nothing)
last_turn: {"id":"t2","outcome":"stopped","at":"@6s","cause":"retry","attempt":1,"synthetic":true,"had_output":false,"actor":"harness","seq":6}
-- facts --
8 turn.started {"turn":"t3","cause":"message"}
9 by=retry turn.stop_requested {"turn":"t3","actor":"stall"}
10 turn.stopped {"turn":"t3"}
-- state pending last_turn --
pending: (nothing)
last_turn: {"id":"t3","outcome":"stopped","at":"@10s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"stall","seq":10}
