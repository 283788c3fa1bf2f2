A process that starts the turn of a queued message takes the message; one that was never queued is not queued behind the
turn that has it (§2.2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
2 message.accepted {"message":"m1","content":"x","synthetic":false}
3 by=harness message.accepted {"message":"m2","content":"x","synthetic":false}
4 by=harness message.accepted {"message":"m2","content":"y","synthetic":false}
-- ignored --
4: 1, the last message.accepted by harness: closed-id
-- state queue --
queue: [{"message":"m2","seq":3,"synthetic":false,"at":"@3s"}]
-- facts --
5 by=compaction message.accepted {"message":"m3","content":"y","synthetic":true}
5 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m2"}
5 by=compaction message.withdrawn {"message":"m3","by":"ada"}
-- work turn --
turn: {"turn":"t2","cause":"message","message":"m2","content":"x","attempt":1}
-- facts --
6 by=compaction message.withdrawn {"message":"m2","by":"ada"}
-- work turn --
(none)
-- facts --
7 by=compaction message.withdrawn {"message":"m2","by":"ada"}
8 by=compaction message.withdrawn {"message":"m9","by":"ada"}
9 by=harness message.accepted {"message":"m2","content":"y","synthetic":false}
10 turn.started {"turn":"t3","cause":"message","message":"m2"}
-- ignored --
7: 1, the last message.withdrawn by compaction: closed-id
8: 1, the last message.withdrawn by compaction: unknown
9: 1, the last message.accepted by harness: closed-id
-- state queue pending --
queue: (nothing)
pending: (nothing)
-- endings --
2 message m1 delivered
5 message m3 withdrawn
6 message m2 withdrawn
10 turn t1 stopped (replaced)
