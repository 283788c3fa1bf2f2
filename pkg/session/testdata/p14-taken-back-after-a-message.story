The person takes an answer back after a later message of theirs. The message takes the place of the question, as it had
without the answer (P14, C18).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"message","on_owner_loss":"keep"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
4 by=ledger message.accepted {"message":"answer-i5l5hakm5zrg4ksfj6ps","content":"x","synthetic":true}
5 by=compaction message.accepted {"message":"m1","content":"x"}
6 by=compaction message.withdrawn {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- state --
queued prompt=p1,superseded queued=m1
-- blocker p1 status reason seq --
status: "superseded"
reason: "m1"
seq: 6
