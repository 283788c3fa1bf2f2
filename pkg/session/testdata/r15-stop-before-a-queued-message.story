A message is queued while a turn runs, and the turn completes. A person stops the session before the queued message has
got its turn. The message waits for an act of a person (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 by=compaction message.accepted {"message":"m1","content":"next","synthetic":true}
4 turn.completed {"turn":"t1"}
-- request @12s --
stop {"by":"ben"}
-- result --
5 turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
-- request @13s --
stop {"by":"ben"}
-- result --
nothing to append, see 5
-- state held_seq stopped_seq queue pending --
held_seq: 5
stopped_seq: 5
queue: [{"message":"m1","seq":3,"synthetic":true,"at":"@3s"}]
pending: {"stop":{"turn":"t1","actor":"person","by":"ben","at":"@12s","seq":5}}
-- facts --
14 turn.stopped {"turn":"t1","actor":"person"}
-- facts --
17 by=compaction message.accepted {"message":"m2","content":"go on"}
-- state --
queued owned-by=17 last=t1,completed queued=m1 queued=m2
