Recovery's own facts are no progress: they clear no counter, take nothing from the queue, and the session does not look idle (R12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m-t1"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
4 by=retry retry.scheduled {"turn":"t1","attempt":2,"delay_ms":4000,"due_at":"@7s","error":{"kind":"server_error","text":"x"}}
5 by=retry turn.requested {"turn":"t2","cause":"retry","of_turn":"t1","attempt":2}
6 turn.started {"turn":"t2","cause":"retry","synthetic":true,"of_turn":"t1","attempt":2}
7 by=compaction message.accepted {"message":"m1","content":"x","synthetic":true}
8 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
8 by=reconciler turn.interrupted {"turn":"t2","reason":"owner-lost"}
-- state phase retry queue last_turn active_at --
phase: "queued"
retry: {"attempt":2,"error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":0}
queue: [{"message":"m1","seq":7,"synthetic":true,"at":"@7s"}]
last_turn: {"id":"t2","outcome":"interrupted","reason":"owner-lost","at":"@8s","cause":"retry","of_turn":"t1","attempt":2,"synthetic":true,"had_output":false,"seq":8}
active_at: "@2s"
