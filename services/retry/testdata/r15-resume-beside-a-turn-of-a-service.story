A turn completes, and the queue hands out the next message. No person asked for that turn: a resume is refused, because
nothing waits for a person (R14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 by=compaction message.accepted {"message":"m1","content":"next"}
4 turn.completed {"turn":"t1"}
5 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m1"}
-- request @9s --
resume {"by":"ben"}
-- result --
409 turn t2 is already requested
  {"status":"queued","reason":"turn t2","at":"@5s","seq":5}
