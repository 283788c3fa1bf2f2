A session has had no turn, and a message is about to start. A person stops the session: the turn that would begin is
requested and stopped in one commit. The message waits for an act of a person, and a second stop appends nothing (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=harness message.accepted {"message":"m1","content":"hello"}
-- request @3s --
stop {"by":"ben","reason":"not now"}
stop {"by":"ben"}
-- result --
3 turn.requested {"turn":"turn-vdwxg3acd2bhztjtesyr","cause":"message","message":"m1"}
3 turn.stop_requested {"turn":"turn-vdwxg3acd2bhztjtesyr","actor":"person","by":"ben","reason":"not now"}
nothing to append, see 3
-- state --
queued owned-by=17 last=turn-vdwxg3acd2bhztjtesyr,stopped,not now queued=m1 stop=turn-vdwxg3acd2bhztjtesyr,person
-- state held_seq stopped_seq last_turn queue pending --
held_seq: 3
stopped_seq: 3
last_turn: {"id":"turn-vdwxg3acd2bhztjtesyr","outcome":"stopped","reason":"not now","at":"@3s","message":"m1","message_seq":2,"cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":3}
queue: [{"message":"m1","seq":2,"synthetic":false,"at":"@2s"}]
pending: {"stop":{"turn":"turn-vdwxg3acd2bhztjtesyr","actor":"person","by":"ben","reason":"not now","at":"@3s","seq":3}}
-- endings --
3 turn turn-vdwxg3acd2bhztjtesyr stopped (not now)
-- feed --
1 session.opened s
2 message.accepted m1
3 turn.requested turn-vdwxg3acd2bhztjtesyr
3 turn.stop_requested turn-vdwxg3acd2bhztjtesyr
