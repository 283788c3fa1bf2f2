The first commit that the log still has names a predecessor: the session was closed and purged, and is closed for good (§2.4).

-- facts --
77 guard=70 by=ledger session.closed {"reason":"archived","by":"ada"}
-- parked --
77: gap, its writer had seen 70
-- ignored --
77: 1, the last session.closed by ledger: closed
-- state --
v: 1
harness: "h1"
session: "s1"
root: "s1"
parent: ""
title: ""
agent: ""
model: ""
incarnation: ""
exclusive: false
superseded_by: ""
epoch: 0
owned: false
phase: "closed"
seq: 77
rules: 2
commits: 1
updated_at: @1s
closed: {"reason":"purged","at":@1s,"seq":77,"purged":true}
policy: {"auto_retry":true,"retry_max":0,"resume":"auto","resume_max":10,"compaction_threshold":0.7,"context_limit":0,"idle_compaction_after_s":0,"stall_after_s":600}
ignored: {"count":1,"last":{"type":"holdfast.session.closed","writer":"ledger","why":"closed","seq":77}}
unknown_facts: 0
parked: 0
-- facts --
78 session.opened {"incarnation":"17"}
79 epoch=2 inc=17 tool.started {"call":"c1","name":"x"}
-- ignored --
78: 1, the last session.opened by harness: closed
79: 1, the last tool.started by harness: closed
-- claimable 17 --
17 false
-- wish --
answer {"prompt":"p1","answers":[],"by":"ada"}
close {"by":"ada"}
-- refusal --
409 closed purged
  the session is closed (purged): open another one
  {"status":"closed","reason":"purged","at":@1s,"seq":77}
-- reply --
close: nothing to append, see 77
