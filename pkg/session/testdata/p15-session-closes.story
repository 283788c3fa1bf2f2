Closing a session closes everything open in it, and is final (P15, R10, §2.1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
2 tool.started {"call":"c2","turn":"t1","name":"serve","background":true}
2 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"message"}
3 by=compaction message.accepted {"message":"m1","content":"x","synthetic":true}
3 by=compaction compaction.requested {"compaction":"k1","reason":"manual","used":1,"limit":2}
3 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m1"}
4 prompt.requested {"prompt":"p3","turn":"t1","kind":"question","delivery":"callback"}
5 by=ledger prompt.answered {"prompt":"p3","answers":[],"by":"ada"}
-- feed --
1 session.opened s1
2 turn.started t1
2 tool.started c1
2 tool.started c2
2 prompt.requested p1
2 prompt.requested p2
3 message.accepted m1
3 compaction.requested k1
3 turn.requested t2
4 prompt.requested p3
5 prompt.answered p3
-- wish --
close {"reason":"archived","by":"ada"}
-- facts appended --
6 session.closed {"reason":"archived","by":"ada"}
-- feed --
6 session.closed s1
6 message.withdrawn m1 derived {"message":"m1","by":"ada"}
6 compaction.failed k1 derived {"compaction":"k1","error":{"kind":"session-closed","text":""}}
6 tool.failed c2 derived {"call":"c2","error":{"kind":"ended-with-session","text":""},"synthetic":true}
6 prompt.withdrawn p2 derived {"prompt":"p2","reason":"session-closed"}
6 turn.stopped t1 derived {"turn":"t1","actor":"","reason":"session-closed"}
6 tool.failed c1 derived {"call":"c1","error":{"kind":"ended-with-turn","text":""},"synthetic":true}
6 prompt.withdrawn p1 derived {"prompt":"p1","reason":"turn-ended"}
-- state --
v: 1
harness: "h1"
session: "s1"
root: "s1"
parent: ""
title: ""
agent: ""
model: ""
incarnation: "17"
exclusive: true
superseded_by: ""
epoch: 1
owned: false
phase: "closed"
seq: 6
rules: 2
commits: 6
opened_at: @1s
updated_at: @6s
active_at: @5s
closed: {"reason":"archived","by":"ada","at":@6s,"seq":6}
last_turn: {"id":"t1","outcome":"stopped","reason":"session-closed","at":@6s,"prompts":[{"prompt":"p3","status":"answered","seq":5}],"cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":6}
policy: {"auto_retry":true,"retry_max":0,"resume":"auto","resume_max":10,"compaction_threshold":0.7,"context_limit":0,"idle_compaction_after_s":0,"stall_after_s":600}
recent: [{"entity":"prompt","id":"p3","name":"question","outcome":"answered","at":@5s,"seq":5,"late":null,"opened_seq":4,"since":@4s,"epoch":1},{"entity":"message","id":"m1","outcome":"withdrawn","reason":"session-closed","at":@6s,"seq":6,"late":null},{"entity":"compaction","id":"k1","outcome":"failed","reason":"session-closed","at":@6s,"seq":6,"late":null},{"entity":"tool","id":"c2","name":"serve","outcome":"ended-with-session","reason":"session-closed","at":@6s,"seq":6,"late":null},{"entity":"prompt","id":"p2","name":"question","outcome":"withdrawn","reason":"session-closed","at":@6s,"seq":6,"late":null,"opened_seq":2,"since":@2s,"epoch":1},{"entity":"tool","id":"c1","name":"bash","outcome":"ended-with-turn","reason":"turn-ended","at":@6s,"seq":6,"late":null},{"entity":"prompt","id":"p1","name":"permission","outcome":"withdrawn","reason":"turn-ended","at":@6s,"seq":6,"late":null,"opened_seq":2,"since":@2s,"epoch":1},{"entity":"turn","id":"t1","outcome":"stopped","reason":"session-closed","at":@6s,"seq":6,"late":null}]
ignored: {"count":0}
unknown_facts: 0
parked: 0
-- pending --
(none)
-- work --
(none)
-- wish --
answer {"prompt":"p1","answers":[],"by":"ada"}
answer {"prompt":"p9","answers":[],"by":"ada"}
stop {"by":"ada"}
configure {"policy":{"auto_retry":false},"by":"ada"}
close {"reason":"deleted","by":"bob"}
-- refusal --
410 withdrawn turn-ended
  prompt p1 is withdrawn (turn-ended): it can no longer be decided
  {"status":"withdrawn","reason":"turn-ended","at":@6s,"seq":6,"prompt":"p1"}
409 closed archived
  the session is closed (archived): open another one
  {"status":"closed","reason":"archived","by":"ada","at":@6s,"seq":6}
409 closed archived
  the session is closed (archived): open another one
  {"status":"closed","reason":"archived","by":"ada","at":@6s,"seq":6}
409 closed archived
  the session is closed (archived): open another one
  {"status":"closed","reason":"archived","by":"ada","at":@6s,"seq":6}
-- reply --
close: appended as 6
close: nothing to append, see 6
-- facts --
7 turn.completed {"turn":"t1"}
8 session.claimed {"incarnation":"18"}
9 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- ignored --
7: 1, the last turn.completed by harness: closed
8: 1, the last session.claimed by harness: closed
9: 1, the last turn.interrupted by reconciler: closed
-- claimable 17 18 --
17 false
18 false
