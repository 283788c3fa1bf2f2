The harness names the actor of a stop, for every requester. Only after a stop by compaction the queue does not wait (C7,
§2.2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m-t1"}
3 turn.stopped {"turn":"t1","actor":"person"}
-- state held_seq last_turn --
held_seq: 3
last_turn: {"id":"t1","outcome":"stopped","at":"@3s","message":"m-t1","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":3}
-- facts --
4 turn.started {"turn":"t2","cause":"message","message":"m-t2"}
5 by=compaction turn.stop_requested {"turn":"t2","actor":"compaction"}
6 turn.stopped {"turn":"t2","actor":"person"}
-- state held_seq last_turn --
held_seq: 6
last_turn: {"id":"t2","outcome":"stopped","at":"@6s","message":"m-t2","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":6}
-- facts --
11 @7s turn.started {"turn":"t5","cause":"message","message":"m-t5"}
12 @8s turn.started {"turn":"t6","cause":"answer","of_turn":"t5"}
13 @9s by=compaction turn.stop_requested {"turn":"t6","actor":"compaction"}
14 @10s turn.stopped {"turn":"t6","actor":"compaction"}
-- state held_seq last_turn --
held_seq: (nothing)
last_turn: {"id":"t6","outcome":"stopped","at":"@10s","cause":"answer","of_turn":"t5","attempt":1,"synthetic":false,"had_output":false,"actor":"compaction","seq":14}
