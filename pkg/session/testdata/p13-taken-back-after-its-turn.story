The answer to a question of a turn became a message. A person stops the turn and takes the message back. The question
ends with its turn, as it had without the answer. It can not be answered, and no turn brings it (P13, C18).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message","on_owner_loss":"keep"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 by=ledger message.accepted {"message":"answer-2txg23qa7p5dtcpu2fa4","content":"x","synthetic":true}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
7 by=reconciler turn.stopped {"turn":"t1","actor":"person"}
8 by=compaction message.withdrawn {"message":"answer-2txg23qa7p5dtcpu2fa4","by":"ada"}
-- state --
idle last=t1,stopped
-- blocker p1 status reason seq --
status: "withdrawn"
reason: "turn-ended"
seq: 8
-- request @9s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
410 prompt p1 is withdrawn (turn-ended): it can no longer be decided
  {"status":"withdrawn","reason":"turn-ended","at":"@8s","seq":8,"prompt":"p1"}
-- facts --
10 session.claimed {"incarnation":"18"}
10 turn.started {"turn":"t2","cause":"message","synthetic":true,"prompts":["p1"]}
-- state turn --
turn: {"id":"t2","cause":"message","synthetic":true,"since":"@10s","attempt":1,"epoch":2}
