An undelivered answer with delivery by message is part of the continuation (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"plan","delivery":"message","questions":[{"id":"q","question":"Go on?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"yes"}],"by":"user-1"}
-- owner --
dead
-- decide @60s --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 turn.requested {"turn":"turn-hyh4ne5gxwnswizoobcy","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
queued turn=t1,message prompt=p1,answered requested=turn-hyh4ne5gxwnswizoobcy,answer,of=t1
