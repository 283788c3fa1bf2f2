The answer to a question of a turn becomes a message while another question, with a deadline, blocks the turn. The
deadline passes. The turn that continues takes the message (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message","on_owner_loss":"keep"}
4 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"message","on_owner_loss":"keep","deadline":"@100s"}
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
6 by=ledger message.accepted {"message":"answer-2txg23qa7p5dtcpu2fa4","content":"x","synthetic":true}
-- decide @50s --
look @100s
-- decide @101s --
7 prompt.expired {"prompt":"p2","reason":"deadline"}
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","message":"answer-2txg23qa7p5dtcpu2fa4","prompt":"p1","prompts":["p2","p1"]}
-- state --
queued turn=t1,message prompt=p1,answered prompt=p2,expired queued=answer-2txg23qa7p5dtcpu2fa4 requested=turn-shfzy35gxxwiyxqjd2da,answer,of=t1,message=answer-2txg23qa7p5dtcpu2fa4
-- work turn --
turn: {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","message":"answer-2txg23qa7p5dtcpu2fa4","content":"x","synthetic":true,"attempt":1,"prompt":"p1","prompts":[{"prompt":"p2","seq":7,"status":"expired"},{"prompt":"p1","seq":6,"status":"answered","by":"ada"}]}
