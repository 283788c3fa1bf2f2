A message waits. A person stops the turn. The process has not read the stop, and starts a turn for the message: the stop
moves to that turn. A message from after the stop is newer than the stop. The stop stays behind then, also when the agent starts a
turn by itself over that turn (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 message.accepted {"message":"m1","content":"next"}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 turn.started {"turn":"t2","cause":"message","message":"m1"}
-- state stopped_seq held_seq --
stopped_seq: 4
held_seq: 4
-- facts --
6 by=harness message.accepted {"message":"m2","content":"another"}
6 by=harness turn.started {"turn":"t3","cause":"message","message":"m2"}
-- state stopped_seq held_seq --
stopped_seq: (nothing)
held_seq: (nothing)
-- facts --
7 by=harness turn.started {"turn":"t4","cause":"message","synthetic":true}
-- state --
running owned-by=17 turn=t4,message last=t3,stopped,replaced stop=t2,person
