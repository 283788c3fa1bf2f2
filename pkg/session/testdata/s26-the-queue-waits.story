After a failure, a stop or an interruption the queue waits for a person, from that ending on; a stop from when it was asked for. A completed turn, and a person's, let it move; a stop for a compaction does not hold it (§2.6).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"},"had_output":false}
-- state held_seq --
held_seq: 3
-- facts --
4 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"authentication"}
-- state held_seq --
held_seq: 3
-- facts --
5 by=compaction message.accepted {"message":"m1","content":"Next","synthetic":false,"by":"ada"}
6 turn.started {"turn":"t2","cause":"message","message":"m1"}
-- state held_seq --
held_seq: (nothing)
-- facts --
7 by=ledger turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
8 by=compaction message.accepted {"message":"m2","content":"Rather this","synthetic":false,"by":"ada"}
9 turn.stopped {"turn":"t2","actor":"person"}
-- state held_seq --
held_seq: 7
-- facts --
10 turn.started {"turn":"t3","cause":"message","message":"m2"}
11 by=compaction turn.stop_requested {"turn":"t3","actor":"compaction"}
11 by=compaction compaction.requested {"compaction":"k1","reason":"mid-stream","used":1,"limit":1,"follow_up":"continue"}
12 turn.stopped {"turn":"t3","actor":"compaction"}
-- state held_seq --
held_seq: (nothing)
-- facts --
13 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
14 session.claimed {"incarnation":"18"}
15 turn.started {"turn":"t4","cause":"retry","of_turn":"t3"}
16 by=reconciler turn.interrupted {"turn":"t4","reason":"owner-lost"}
-- state held_seq --
held_seq: 16
-- facts --
17 turn.started {"turn":"t5","cause":"resume","of_turn":"t4"}
18 turn.completed {"turn":"t5"}
-- state held_seq --
held_seq: (nothing)
