The harness takes a message in, and its turn is a later commit. A person stops the session between the two. The turn
begins with the stop. A message from after the stop begins without it (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=harness message.accepted {"message":"m1","content":"hello"}
-- request @3s --
stop {"by":"ben"}
-- result --
3 turn.requested {"turn":"turn-vdwxg3acd2bhztjtesyr","cause":"message","message":"m1"}
3 turn.stop_requested {"turn":"turn-vdwxg3acd2bhztjtesyr","actor":"person","by":"ben"}
-- facts --
4 turn.started {"turn":"t1","cause":"message","message":"m1"}
-- state --
running owned-by=17 turn=t1,message last=turn-vdwxg3acd2bhztjtesyr,stopped stop=t1,person
-- facts --
5 turn.stopped {"turn":"t1","actor":"person"}
6 by=harness message.accepted {"message":"m2","content":"again"}
-- request --
stop {"by":"ben"}
-- result --
7 turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
-- facts --
8 by=harness message.accepted {"message":"m3","content":"go on"}
9 turn.started {"turn":"t3","cause":"message","message":"m3"}
-- state --
running owned-by=17 turn=t3,message last=t1,stopped queued=m2 stop=t1,person
-- state stopped_seq held_seq --
stopped_seq: (nothing)
held_seq: (nothing)
