A turn waits for its retry, and meanwhile another one, which no person began, has failed and is not decided yet: a stop
concerns both, and is not requested twice (T11, R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
4 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
5 turn.started {"turn":"t2","cause":"message","synthetic":true}
6 turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- state phase retry --
phase: "retrying"
retry: {"state":"scheduled","turn":"t1","attempt":1,"due_at":"@5s","error":{"kind":"server_error","text":"x"},"same_failures":2,"resumes":0}
-- request @7s --
stop {"by":"ada"}
-- result --
7 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
7 turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
-- state phase retry --
phase: "idle"
retry: {"state":"abandoned","turn":"t1","attempt":1,"due_at":"@5s","reason":"stopped","error":{"kind":"server_error","text":"x"},"same_failures":2,"resumes":0}
-- request --
stop {"by":"ada"}
-- result --
nothing to append, see 7
