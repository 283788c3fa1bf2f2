A turn takes its message out of the queue, clears the pending turn, and, caused by no person, leaves a scheduled retry alone (§2.2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m-t1"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
4 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-01-01T02:00:05+02:00","error":{"kind":"server_error","text":"x"}}
5 by=compaction message.accepted {"message":"m1","content":"a","synthetic":true}
5 by=compaction message.accepted {"message":"m2","content":"b","synthetic":true}
5 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m1"}
6 turn.started {"turn":"t9","cause":"message","synthetic":true,"message":"m2"}
-- state queue pending retry phase active_at --
queue: [{"message":"m1","seq":5,"synthetic":true,"at":"@5s"}]
pending: (nothing)
retry: {"turn":"t1","attempt":1,"error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":0}
phase: "running"
active_at: "@2s"
-- endings --
2 message m-t1 delivered
3 turn t1 failed (server_error)
6 message m2 delivered
