A stop of a session without an owner is kept until recovery ends the turn, as stopped by the same actor (R18).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"c1","child":"s2"}]}
-- request @4s --
stop {"by":"ada"}
-- result --
4 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- request @5s --
stop {"by":"bob"}
-- result --
nothing to append, see 4
-- state phase pending --
phase: "waiting"
pending: {"stop":{"turn":"t1","actor":"person","by":"ada","at":"@4s","seq":4}}
-- facts --
5 by=reconciler turn.stopped {"turn":"t1","actor":"person"}
-- state phase pending last_turn waits_for --
phase: "idle"
pending: (nothing)
last_turn: {"id":"t1","outcome":"stopped","at":"@5s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":5}
waits_for: (nothing)
-- work --
(none)
-- endings --
5 tool c1 ended-with-turn (turn-ended)
5 turn t1 stopped
