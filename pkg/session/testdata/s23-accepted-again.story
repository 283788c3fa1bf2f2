A message that is accepted again changes nothing, unless in the very commit of the turn that has it: only then does its ending
say since when it was there (§2.3, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
2 message.accepted {"message":"m1","content":"a","synthetic":false}
3 turn.completed {"turn":"t1"}
4 by=ledger session.configured {"policy":{"auto_retry":false},"by":"ada"}
5 prompt.requested {"prompt":"p1","kind":"question","delivery":"message"}
6 by=compaction message.accepted {"message":"m1","content":"a","synthetic":false,"by":"ada"}
7 by=compaction message.accepted {"message":"m2","content":"b","synthetic":true}
8 by=compaction message.withdrawn {"message":"m2","by":"ada"}
8 by=compaction message.accepted {"message":"m2","content":"b","synthetic":false,"by":"ada"}
-- ignored --
6: 1, the last message.accepted by compaction: closed-id
8: 1, the last message.accepted by compaction: closed-id
-- state phase active_at policy queue prompts recent --
phase: "waiting"
active_at: "@2s"
policy: {"auto_retry":false,"retry_max":0,"resume":"auto","resume_max":10,"compaction_threshold":0.7,"context_limit":0,"idle_compaction_after_s":0,"stall_after_s":600}
queue: (nothing)
prompts: {"p1":{"kind":"question","since":"@5s","updated_at":"@5s","status":"awaiting","epoch":1,"blocking":true,"seq":5,"settled_seq":0,"on_owner_loss":"keep","delivery":"message","deadline":null}}
recent: [{"entity":"message","id":"m1","outcome":"delivered","at":"@2s","seq":2,"late":null,"opened_seq":2},{"entity":"turn","id":"t1","outcome":"completed","at":"@3s","seq":3,"late":null},{"entity":"message","id":"m2","outcome":"withdrawn","at":"@8s","seq":8,"late":null,"opened_seq":7}]
-- facts --
9 turn.started {"turn":"t2","cause":"message","message":"m3","synthetic":true}
10 by=compaction message.accepted {"message":"m3","content":"c","synthetic":false,"by":"ada"}
11 turn.started {"turn":"t3","cause":"message","message":"m4","synthetic":true}
11 turn.completed {"turn":"t3"}
11 message.accepted {"message":"m4","content":"d","synthetic":true}
-- ignored --
10: 1, the last message.accepted by compaction: closed-id
-- state active_at turn last_turn queue --
active_at: "@2s"
turn: (nothing)
last_turn: {"id":"t3","outcome":"completed","at":"@11s","message":"m4","cause":"message","attempt":1,"synthetic":true,"had_output":false,"seq":11}
queue: (nothing)
