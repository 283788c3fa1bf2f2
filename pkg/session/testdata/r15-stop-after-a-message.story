A person stops, sends a message, and stops again before the harness has stopped: the message waits, too (R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
-- request @3s --
stop {"by":"ada"}
-- result --
3 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- facts --
4 by=compaction message.accepted {"message":"m1","content":"and then","synthetic":false,"by":"ada"}
-- request @5s --
stop {"by":"ada"}
-- result --
5 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- request @6s --
stop {"by":"ada"}
-- result --
nothing to append, see 5
-- facts --
6 turn.stopped {"turn":"t1","actor":"person"}
-- state phase held_seq queue pending --
phase: "queued"
held_seq: 5
queue: [{"message":"m1","seq":4,"synthetic":false,"at":"@4s"}]
pending: (nothing)
