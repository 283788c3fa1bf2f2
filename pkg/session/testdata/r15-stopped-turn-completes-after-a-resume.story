A person stops a turn and its retry, and resumes the session. The agent starts a turn by itself in place of the resumed
one. That turn completes, and the queue moves: the person continued after the stop. Another stop holds it (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 by=compaction message.accepted {"message":"m1","content":"next"}
4 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"x"}}
-- request @5s --
stop {"by":"ben"}
-- result --
5 turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
-- facts --
6 turn.stopped {"turn":"t1","actor":"person"}
7 by=retry as=ben turn.requested {"turn":"t2","cause":"resume","of_turn":"t1"}
8 turn.started {"turn":"own","cause":"message","synthetic":true}
9 turn.completed {"turn":"own"}
-- state held_seq queue --
held_seq: (nothing)
queue: [{"message":"m1","seq":3,"synthetic":false,"at":"@3s"}]
-- request @12s --
stop {"by":"ben"}
-- result --
10 turn.stop_requested {"turn":"own","actor":"person","by":"ben"}
-- state held_seq --
held_seq: 10
