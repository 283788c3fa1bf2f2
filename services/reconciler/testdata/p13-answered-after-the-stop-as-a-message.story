A person stops a turn of a session without an owner, and answers one of its questions before the stop is carried out.
The answer becomes a message, because another question blocks. The stop withdraws that question. The answer is the later
act, so its message gets a turn, although the queue waits since the stop (R15, R18, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message","questions":[{"id":"q","question":"Which?"}]}
4 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"message","questions":[{"id":"q","question":"When?"}]}
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"user-1"}
7 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
7 by=ledger message.accepted {"message":"answer-2txg23qa7p5dtcpu2fa4","content":"blue","synthetic":true}
-- decide --
8 turn.stopped {"turn":"t1","actor":"person"}
8 turn.requested {"turn":"turn-cvdrsiyaxxmztzqku525","cause":"answer","of_turn":"t1","message":"answer-2txg23qa7p5dtcpu2fa4","prompt":"p1","prompts":["p1"]}
-- state --
queued last=t1,stopped prompt=p1,answered queued=answer-2txg23qa7p5dtcpu2fa4 requested=turn-cvdrsiyaxxmztzqku525,answer,of=t1,message=answer-2txg23qa7p5dtcpu2fa4
