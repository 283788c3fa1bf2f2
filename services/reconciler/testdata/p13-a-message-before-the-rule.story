An answer became a message while the queue waited behind a person's stop, in a log from before decisions called for turns. The
message waits in the queue for a person, and nothing is requested for it (P13, R15, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message","questions":[{"id":"q","question":"Which?"}]}
4 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"message","questions":[{"id":"q","question":"When?"}]}
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"user-1"}
7 by=ledger prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
7 by=ledger message.accepted {"message":"answer-2txg23qa7p5dtcpu2fa4","content":"blue","synthetic":true}
-- decide --
8 turn.stopped {"turn":"t1","actor":"person"}
-- state --
queued last=t1,stopped prompt=p1,answered queued=answer-2txg23qa7p5dtcpu2fa4
