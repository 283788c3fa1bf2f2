Pending work that no harness had taken survives and is taken once by the next incarnation; taken work is not handed out
again (R13).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=compaction message.accepted {"message":"m1","content":"Fix it","synthetic":false,"by":"ada"}
2 by=compaction turn.requested {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
-- work --
harness: "h"
session: "s"
epoch: 1
owned: true
seq: 2
turn: {"turn":"t1","cause":"message","message":"m1","content":"Fix it","options":{"model":"big"},"attempt":1}
-- facts --
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- work owned turn --
owned: false
turn: {"turn":"t1","cause":"message","message":"m1","content":"Fix it","options":{"model":"big"},"attempt":1}
-- state phase --
phase: "queued"
-- facts --
4 session.claimed {"incarnation":"18"}
4 turn.started {"turn":"t1","cause":"message","message":"m1"}
-- work --
(none)
-- state phase queue turn pending --
phase: "running"
queue: (nothing)
turn: {"id":"t1","cause":"message","synthetic":false,"message":"m1","message_seq":2,"since":"@4s","attempt":1,"epoch":2,"options":{"model":"big"}}
pending: (nothing)
-- facts --
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"18"}
6 session.claimed {"incarnation":"19"}
7 turn.started {"turn":"t1","cause":"message","message":"m1"}
-- work --
(none)
-- ignored --
(none)
-- endings --
4 message m1 delivered
-- state turn --
turn: {"id":"t1","cause":"message","synthetic":false,"message":"m1","message_seq":2,"since":"@4s","attempt":1,"epoch":3,"options":{"model":"big"}}
