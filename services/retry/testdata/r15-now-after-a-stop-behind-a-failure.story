A turn fails for good, a message waits behind it, and a person stops the session. `now` repeats the turn that failed,
and its completion lets the queue move (R15, T15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m0","synthetic":true,"options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"}}
4 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"authentication"}
5 by=compaction message.accepted {"message":"m1","content":"next","synthetic":true}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
7 turn.stopped {"turn":"t1","actor":"person"}
-- state held_seq stopped_seq --
held_seq: 6
stopped_seq: 6
-- decide @8s --
(none)
-- request @9s --
now {"by":"ben"}
now {"by":"ben"}
-- result --
8 turn.requested {"turn":"turn-g6nm52yrtrkzs4pvm3bh","cause":"retry","of_turn":"t1","message":"m0","attempt":1,"options":{"model":"big"}}
nothing to append, see 8
-- facts --
9 turn.started {"turn":"$requested"}
10 turn.completed {"turn":"$turn"}
-- state held_seq stopped_seq queue retry --
held_seq: (nothing)
stopped_seq: (nothing)
queue: [{"message":"m1","seq":5,"synthetic":true,"at":"@5s"}]
retry: (nothing)
