A person's message takes the place of a question that was asked outside of any turn. The turn of the message completes,
and the process dies. No turn is requested for the question (P14).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 by=compaction message.accepted {"message":"m1","content":"x"}
3 by=compaction turn.requested {"turn":"r1","cause":"message","message":"m1"}
4 turn.started {"turn":"r1"}
5 turn.completed {"turn":"r1"}
-- owner --
dead
-- decide @60s --
6 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- state --
idle last=r1,completed prompt=p1,superseded
