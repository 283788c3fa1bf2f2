A person's turn clears the pending turn, retries, resumes and answers with their counters; a turn with a queued message that is synthetic is no person's, whatever it says (§2.2, §2.6).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m-t1"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
4 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
5 by=retry turn.requested {"turn":"t2","cause":"resume","of_turn":"t1","attempt":1}
-- state retry pending --
retry: {"state":"starting","turn":"t1","attempt":1,"due_at":"@5s","error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":1}
pending: {"turn":{"turn":"t2","cause":"resume","of_turn":"t1","attempt":1,"at":"@5s","seq":5}}
-- facts --
6 by=harness message.accepted {"message":"m1","content":"a","synthetic":true}
6 turn.started {"turn":"t3","cause":"message","synthetic":false,"message":"m1"}
-- state retry pending active_at --
retry: {"turn":"t1","attempt":1,"error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":1}
pending: (nothing)
active_at: "@2s"
-- facts --
7 by=harness message.accepted {"message":"m2","content":"b","synthetic":false,"by":"ada"}
7 turn.started {"turn":"t4","cause":"message","synthetic":false,"message":"m2"}
-- state retry active_at --
retry: (nothing)
active_at: "@7s"
