A session has had no turn, and nothing waits: a stop appends nothing. A message that is sent later is a later act of the
person (R15).

-- facts --
1 session.opened {"incarnation":"17"}
-- request @3s --
stop {"by":"ben"}
-- result --
nothing to append, see 1
-- facts --
4 by=compaction message.accepted {"message":"m1","content":"hello"}
-- state held_seq queue --
held_seq: (nothing)
queue: [{"message":"m1","seq":4,"synthetic":false,"at":"@4s"}]
