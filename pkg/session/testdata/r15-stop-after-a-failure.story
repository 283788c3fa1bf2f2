A turn fails for good, and a message waits for a person, who stops the session. The stop is stored: when the agent has
completed a turn of its own, the message still waits. A second stop appends nothing (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 by=compaction message.accepted {"message":"m1","content":"next","synthetic":true}
4 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"}}
5 by=retry retry.abandoned {"turn":"t1","attempt":1,"reason":"authentication"}
-- request @8s --
stop {"by":"ben"}
stop {"by":"ben"}
-- result --
6 turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
nothing to append, see 6
-- facts --
9 turn.stopped {"turn":"t1","actor":"person"}
10 turn.started {"turn":"own","cause":"message","synthetic":true}
11 turn.completed {"turn":"own"}
-- state held_seq stopped_seq --
held_seq: 6
stopped_seq: 6
-- state --
queued owned-by=17 last=own,completed queued=m1
