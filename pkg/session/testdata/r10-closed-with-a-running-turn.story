A session closed with a running turn converges and is never continued (R10).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 by=ledger session.closed {"reason":"archived","by":"ada"}
5 by=retry turn.requested {"turn":"t2","cause":"resume","of_turn":"t1"}
6 by=reconciler tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
7 by=compaction message.accepted {"message":"m1","content":"x","synthetic":false}
-- ignored --
5: 1, the last turn.requested by retry: closed
6: 1, the last tool.interrupted by reconciler: closed
7: 1, the last message.accepted by compaction: closed
-- state phase owned left last_turn pending queue --
phase: "closed"
owned: false
left: (nothing)
last_turn: {"id":"t1","outcome":"stopped","reason":"session-closed","at":"@4s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":4}
pending: (nothing)
queue: (nothing)
-- endings --
4 tool c1 ended-with-turn (turn-ended)
4 turn t1 stopped (session-closed)
-- work --
(none)
