A person's message after a failure moves the queue, even if the retry is abandoned only later. A message sent while a
retry was planned waits for the person once that is abandoned (§2.6, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"},"had_output":false}
4 by=compaction message.accepted {"message":"m1","content":"Never mind, the other one","synthetic":false,"by":"ada"}
5 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"authentication"}
-- state held_seq --
held_seq: 3
-- facts --
6 turn.started {"turn":"t2","cause":"message","message":"m1"}
7 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
8 by=retry retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:09Z","error":{"kind":"server_error","text":"x"}}
9 by=compaction message.accepted {"message":"m2","content":"And then this","synthetic":false,"by":"ada"}
10 by=retry retry.abandoned {"turn":"t2","attempt":1,"reason":"cancelled"}
-- state held_seq --
held_seq: 10
