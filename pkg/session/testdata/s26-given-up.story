An abandoned retry stays abandoned through an answer's continuation, and ends when a person retries it (§2.6).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"quota","text":"x"},"had_output":false}
4 by=retry retry.abandoned {"turn":"t1","attempt":1,"reason":"quota"}
5 by=ledger turn.requested {"turn":"t2","cause":"answer"}
-- state retry --
retry: {"state":"abandoned","turn":"t1","attempt":1,"reason":"quota","error":{"kind":"quota","text":"x"},"same_failures":1,"resumes":0}
-- facts --
6 turn.started {"turn":"t2","cause":"answer","synthetic":true}
-- state retry --
retry: {"state":"abandoned","turn":"t1","attempt":1,"reason":"quota","error":{"kind":"quota","text":"x"},"same_failures":1,"resumes":0}
-- facts --
7 turn.stopped {"turn":"t2","actor":"harness"}
8 turn.started {"turn":"t3","cause":"retry","synthetic":true}
-- state retry --
retry: {"attempt":1,"error":{"kind":"quota","text":"x"},"same_failures":1,"resumes":0}
