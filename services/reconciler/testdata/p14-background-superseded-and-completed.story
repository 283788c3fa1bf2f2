A person's message takes the place of a question of a call in the background, whose turn has completed. The turn of the
message completes, and the process dies. Recovery ends the call, and requests no turn (P14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
2 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
2 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","on_owner_loss":"keep"}
2 turn.completed {"turn":"t1"}
3 by=compaction message.accepted {"message":"m1","content":"x"}
3 by=compaction turn.requested {"turn":"r1","cause":"message","message":"m1"}
4 turn.started {"turn":"r1"}
5 turn.completed {"turn":"r1"}
-- owner --
dead
-- decide @60s --
6 session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 tool.failed {"call":"c1","error":{"kind":"answered-in-chat","text":"answered in chat"},"synthetic":true}
-- state --
idle last=r1,completed
