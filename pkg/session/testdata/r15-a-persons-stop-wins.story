A person's stop wins over what was only asked for: a pending turn is taken back, a retry is given up, and a start that crosses it is ignored (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=compaction message.accepted {"message":"m1","content":"x","synthetic":false}
2 by=compaction turn.requested {"turn":"t1","cause":"message","message":"m1"}
-- request @3s --
stop {"by":"ada"}
-- result --
3 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- work --
harness: "h"
session: "s"
epoch: 1
owned: true
seq: 3
stop: {"turn":"t1","actor":"person"}
-- state phase queue last_turn pending --
phase: "queued"
queue: [{"message":"m1","seq":2,"synthetic":false,"at":"@2s"}]
last_turn: {"id":"t1","outcome":"stopped","at":"@3s","message":"m1","message_seq":2,"cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":3}
pending: {"stop":{"turn":"t1","actor":"person","by":"ada","at":"@3s","seq":3}}
-- facts --
4 turn.started {"turn":"t1","cause":"message","message":"m1"}
-- ignored --
4: 1, the last turn.started by harness: closed-id
-- request @5s --
stop {"by":"ada"}
-- result --
nothing to append, see 4
-- facts --
5 turn.started {"turn":"t2","cause":"message","message":"m1"}
6 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
7 by=retry retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"@8s","error":{"kind":"server_error","text":"x"}}
-- feed --
1 session.opened s
2 message.accepted m1
2 turn.requested t1
3 turn.stop_requested t1
5 turn.started t2
6 turn.failed t2
7 retry.scheduled t2
-- request @8s --
stop {"by":"ada"}
-- result --
8 turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
-- state phase retry last_turn pending --
phase: "idle"
retry: {"state":"abandoned","turn":"t2","attempt":1,"due_at":"@8s","reason":"stopped","error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":0}
last_turn: {"id":"t2","outcome":"failed","reason":"server_error","at":"@6s","error":{"kind":"server_error","text":"x"},"message":"m1","message_seq":2,"cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":6}
pending: {"stop":{"turn":"t2","actor":"person","by":"ada","at":"@8s","seq":8}}
-- feed --
8 turn.stop_requested t2
8 retry.abandoned t2 derived {"turn":"t2","attempt":1,"reason":"stopped"}
-- facts --
9 turn.stopped {"turn":"t2","actor":"person"}
-- work --
(none)
-- endings --
3 turn t1 stopped
5 message m1 delivered
6 turn t2 failed (server_error)
