That a retry was given up stays to be seen while a message's turn is asked for, until it starts (§2.2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"x","text":"y"},"had_output":false}
4 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"x"}
5 by=compaction message.accepted {"message":"m1","content":"a","synthetic":false,"by":"ada"}
6 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m1"}
-- state retry --
retry: {"state":"abandoned","turn":"t1","attempt":0,"reason":"x","error":{"kind":"x","text":"y"},"same_failures":1,"resumes":0}
-- facts --
7 turn.started {"turn":"t2","cause":"message","message":"m1"}
-- state retry --
retry: (nothing)
