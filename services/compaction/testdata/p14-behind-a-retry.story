A question of an earlier process, outside of any turn, waits. A turn fails, and its retry is scheduled. A person's message
supersedes the question. The retry keeps its place and its message, and the new message waits in the queue (P14, C7).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 session.claimed {"incarnation":"18"}
4 by=harness message.accepted {"message":"m0","content":"fix the login","by":"bot","synthetic":true}
4 by=harness turn.started {"turn":"t1","cause":"message","message":"m0","synthetic":true}
5 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"429"}}
6 by=retry retry.scheduled {"turn":"t1","attempt":1,"due_at":"@60s","error":{"kind":"rate_limit","text":"429"}}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
7 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- facts --
60 by=retry turn.requested {"turn":"r1","cause":"retry","of_turn":"t1","message":"m0","attempt":1}
61 turn.started {"turn":"r1"}
62 turn.completed {"turn":"r1"}
-- decide --
63 turn.requested {"turn":"turn-4wxhdjw6ldeyfcdunn7k","cause":"message","message":"m1","prompt":"p0","prompts":["p0"]}
-- state --
queued owned-by=18 last=r1,completed prompt=p0,superseded queued=m1 requested=turn-4wxhdjw6ldeyfcdunn7k,message,message=m1
