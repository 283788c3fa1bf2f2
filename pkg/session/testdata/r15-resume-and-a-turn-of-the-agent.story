A person stops the session, and resumes it. The agent begins a turn of its own in place of the resumed one. That turn
fails, and its retry completes. The person has continued after the stop, so the queue moves (R15, C7).

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
-- state stopped_seq held_seq --
stopped_seq: (nothing)
held_seq: (nothing)
-- facts --
9 turn.failed {"turn":"own","error":{"kind":"rate_limit","text":"x"}}
10 by=retry turn.requested {"turn":"t3","cause":"retry","of_turn":"own","attempt":1}
11 turn.started {"turn":"t3"}
12 turn.completed {"turn":"t3"}
-- state stopped_seq held_seq queue --
stopped_seq: (nothing)
held_seq: (nothing)
queue: [{"message":"m1","seq":3,"synthetic":false,"at":"@3s"}]
