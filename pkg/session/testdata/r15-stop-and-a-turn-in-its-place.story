A person stops t1. The process has not read the stop, and starts its next step over t1. The stop moves to that step, a
confirmation for t1 changes nothing, and a second stop finds the first one (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
4 turn.started {"turn":"t2","cause":"message","synthetic":true,"of_turn":"t1"}
-- work --
harness: "h"
session: "s"
epoch: 1
owned: true
seq: 4
stop: {"turn":"t2","actor":"person"}
-- state --
running owned-by=17 turn=t2,message last=t1,continued stop=t2,person
-- facts --
5 late turn.stopped {"turn":"t1","actor":"person"}
-- work --
harness: "h"
session: "s"
epoch: 1
owned: true
seq: 5
stop: {"turn":"t2","actor":"person"}
-- state --
running owned-by=17 turn=t2,message last=t1,continued stop=t2,person
-- request @14s --
stop {"by":"ada"}
-- result --
nothing to append, see 3
-- facts --
7 turn.stopped {"turn":"t2","actor":"person"}
-- state stopped_seq held_seq --
stopped_seq: 3
held_seq: 3
