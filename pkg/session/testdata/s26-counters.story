Counters: attempts, same failures and resumes go back to 0 on success; same failures to 1 on another kind (§2.6).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"x"},"had_output":false}
4 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"rate_limit","text":"x"}}
5 by=retry turn.requested {"turn":"t2","cause":"retry","of_turn":"t1","attempt":2}
6 turn.started {"turn":"t2","cause":"retry","synthetic":true,"of_turn":"t1","attempt":2}
7 turn.failed {"turn":"t2","error":{"kind":"rate_limit","text":"x"},"had_output":false}
7 turn.failed {"turn":"t2","error":{"kind":"rate_limit","text":"x"},"had_output":false}
-- state retry --
retry: {"attempt":2,"error":{"kind":"rate_limit","text":"x"},"same_failures":2,"resumes":0}
-- ignored --
7: 1, the last turn.failed by harness: closed-id
-- facts --
8 by=retry turn.requested {"turn":"t3","cause":"retry","of_turn":"t2","attempt":3}
9 turn.started {"turn":"t3","cause":"retry","synthetic":true,"of_turn":"t2","attempt":3}
10 turn.failed {"turn":"t3","error":{"kind":"server_error","text":"x"},"had_output":false}
-- state retry --
retry: {"attempt":3,"error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":0}
-- facts --
11 by=retry turn.requested {"turn":"t4","cause":"resume","of_turn":"t3"}
12 turn.started {"turn":"t4","cause":"resume","synthetic":true,"of_turn":"t3"}
-- state retry --
retry: {"attempt":3,"error":{"kind":"server_error","text":"x"},"same_failures":1,"resumes":1}
-- facts --
13 turn.completed {"turn":"t4"}
-- state retry --
retry: (nothing)
