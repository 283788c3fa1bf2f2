A person stops a turn that was requested for m1, and resumes the session. The process has read neither, and begins m1 by
itself. The person wants m1 to run: the stop does not move to that turn (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=compaction message.accepted {"message":"m1","content":"go"}
2 by=compaction turn.requested {"turn":"t1","cause":"message","message":"m1"}
-- request --
stop {"by":"ada"}
-- result --
3 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- facts --
4 by=retry as=ada turn.requested {"turn":"t2","cause":"message","message":"m1"}
5 turn.started {"turn":"own","cause":"message","message":"m1"}
-- state --
running owned-by=17 turn=own,message last=t1,stopped stop=t1,person
-- state stopped_seq held_seq --
stopped_seq: (nothing)
held_seq: (nothing)
-- facts --
6 turn.stopped {"turn":"t1","actor":"person"}
-- state --
running owned-by=17 turn=own,message last=t1,stopped
