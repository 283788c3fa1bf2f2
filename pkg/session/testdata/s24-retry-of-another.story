A retry is of the turn that ended last, while none is open; of another it is neither planned nor given up. One that has been asked
for and is given up holds the queue (§2.4, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m-t1"}
3 turn.failed {"turn":"t1","error":{"kind":"x","text":"y"},"had_output":false}
4 turn.started {"turn":"t2","cause":"message","message":"m-t2"}
5 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":1,"due_at":"@6s","error":{"kind":"x","text":"y"}}
6 turn.failed {"turn":"t2","error":{"kind":"x","text":"y"},"had_output":false}
7 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":1,"due_at":"@6s","error":{"kind":"x","text":"y"}}
8 by=retry retry.abandoned {"turn":"t1","attempt":1,"reason":"x"}
-- ignored --
5: 1, the last retry.scheduled by retry: unknown
7: 1, the last retry.scheduled by retry: unknown
8: 1, the last retry.abandoned by retry: unknown
-- state phase retry --
phase: "idle"
retry: {"attempt":0,"error":{"kind":"x","text":"y"},"same_failures":1,"resumes":0}
-- facts --
9 by=retry retry.scheduled {"turn":"t2","attempt":1,"delay_ms":1,"due_at":"@10s","error":{"kind":"x","text":"y"}}
10 by=retry turn.requested {"turn":"t3","cause":"retry","of_turn":"t2","attempt":1}
11 by=compaction message.accepted {"message":"m1","content":"a","synthetic":false,"by":"ada"}
12 by=retry retry.abandoned {"turn":"t2","attempt":1,"reason":"cancelled"}
-- state phase retry held_seq queue pending --
phase: "queued"
retry: {"state":"abandoned","turn":"t2","attempt":1,"due_at":"@10s","reason":"cancelled","error":{"kind":"x","text":"y"},"same_failures":1,"resumes":0}
held_seq: 12
queue: [{"message":"m1","seq":11,"synthetic":false,"at":"@11s"}]
pending: (nothing)
