A person stops a turn that is already being stopped for a compaction. The harness confirms the stop with the actor that
it read first. The turn counts as stopped by the person: nothing follows the compaction (R15, V9).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 by=compaction turn.stop_requested {"turn":"t1","actor":"compaction"}
4 by=compaction compaction.requested {"compaction":"k1","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- request @5s --
stop {"by":"ada"}
-- result --
5 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- facts --
6 turn.stopped {"turn":"t1","actor":"compaction"}
-- state last_turn held_seq stopped_seq pending --
last_turn: {"id":"t1","outcome":"stopped","at":"@6s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":6}
held_seq: 5
stopped_seq: 5
pending: {"compaction":{"compaction":"k1","reason":"mid-stream","at":"@4s","seq":4}}
-- facts --
7 compaction.started {"compaction":"k1"}
8 compaction.completed {"compaction":"k1"}
-- state phase held_seq last_turn --
phase: "idle"
held_seq: 5
last_turn: {"id":"t1","outcome":"stopped","at":"@6s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":6}
