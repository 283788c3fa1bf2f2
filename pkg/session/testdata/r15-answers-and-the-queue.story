A person stops a session in which a message waits. An answer that the living process takes in requests no turn, and the
queue waits. An answer to a question whose asker is gone requests a turn, and the queue moves (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 turn.started {"turn":"t1","cause":"message","synthetic":true}
4 by=compaction message.accepted {"message":"m1","content":"next","synthetic":true}
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
7 by=ledger as=ada prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
8 prompt.delivered {"prompt":"p1"}
-- state held_seq stopped_seq queue --
held_seq: 5
stopped_seq: 5
queue: [{"message":"m1","seq":4,"synthetic":true,"at":"@4s"}]
-- facts --
9 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
10 by=ledger as=ada prompt.answered {"prompt":"p2","answers":[],"by":"ada","owed":true}
10 by=ledger as=ada turn.requested {"turn":"t3","cause":"answer","prompt":"p2","prompts":["p2"]}
-- state held_seq stopped_seq queue --
held_seq: (nothing)
stopped_seq: 5
queue: [{"message":"m1","seq":4,"synthetic":true,"at":"@4s"}]
