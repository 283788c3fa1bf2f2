A turn completes before its process reads a person's stop. The queued message is older than the stop, and waits for an
act of a person. The agent starts a turn by itself: the unconfirmed stop moves there. A message that the person sends
later lets the queue move (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 by=compaction message.accepted {"message":"m1","content":"next"}
-- request @4s --
stop {"by":"ben"}
-- result --
4 turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
-- facts --
5 turn.completed {"turn":"t1"}
-- request @12s --
stop {"by":"ben"}
-- result --
nothing to append, see 5
-- state held_seq stopped_seq queue pending --
held_seq: 4
stopped_seq: 4
queue: [{"message":"m1","seq":3,"synthetic":false,"at":"@3s"}]
pending: {"stop":{"turn":"t1","actor":"person","by":"ben","at":"@4s","seq":4}}
-- facts --
13 turn.started {"turn":"own","cause":"message","synthetic":true}
14 turn.stopped {"turn":"own","actor":"person"}
-- state held_seq stopped_seq pending --
held_seq: 4
stopped_seq: 4
pending: (nothing)
-- facts --
15 turn.started {"turn":"own2","cause":"message","synthetic":true}
16 turn.failed {"turn":"own2","error":{"kind":"quota","text":"x"}}
17 turn.started {"turn":"own3","cause":"message","synthetic":true}
18 turn.completed {"turn":"own3"}
-- state held_seq stopped_seq pending --
held_seq: 4
stopped_seq: 4
pending: (nothing)
-- facts --
20 by=compaction message.accepted {"message":"m2","content":"go on"}
21 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m1"}
22 turn.started {"turn":"t2"}
23 turn.completed {"turn":"t2"}
-- state held_seq stopped_seq queue --
held_seq: (nothing)
stopped_seq: (nothing)
queue: [{"message":"m2","seq":20,"synthetic":false,"at":"@20s"}]
