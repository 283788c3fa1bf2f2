A turn is requested for a message, and a person stops it. The process has not read the stop, and begins that message by
itself: the stop moves to that turn. The receipt for a requested turn ends its stop. The process has read the stop then,
and a turn that it begins after the receipt runs (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 turn.completed {"turn":"t1"}
4 by=compaction message.accepted {"message":"m1","content":"go"}
4 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m1"}
-- request --
stop {"by":"ada"}
-- result --
5 turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
-- work --
harness: "h"
session: "s"
epoch: 1
owned: true
seq: 5
stop: {"turn":"t2","actor":"person"}
-- facts --
6 turn.started {"turn":"own","cause":"message","message":"m1"}
-- state --
running owned-by=17 turn=own,message last=t2,stopped stop=own,person
-- state pending stopped_seq held_seq queue --
pending: {"stop":{"turn":"own","actor":"person","by":"ada","at":"@4s","seq":5}}
stopped_seq: 5
held_seq: 5
queue: (nothing)
-- facts --
7 turn.stopped {"turn":"own","actor":"person"}
-- state --
idle owned-by=17 last=own,stopped
-- state pending stopped_seq held_seq queue --
pending: (nothing)
stopped_seq: 5
held_seq: 5
queue: (nothing)
-- facts --
8 by=compaction message.accepted {"message":"m2","content":"and this"}
8 by=compaction turn.requested {"turn":"t3","cause":"message","message":"m2"}
-- request --
stop {"by":"ada"}
-- result --
9 turn.stop_requested {"turn":"t3","actor":"person","by":"ada"}
-- facts --
10 turn.stopped {"turn":"t3","actor":"person"}
-- state --
queued owned-by=17 last=t3,stopped queued=m2
-- facts --
11 turn.started {"turn":"own2","cause":"message","message":"m2"}
-- state --
running owned-by=17 turn=own2,message last=t3,stopped
