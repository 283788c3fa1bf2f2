A person's report of a changed provider clears the mark of a retry that was abandoned for the provider, and no other
configuration does; other marks stay (T12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"y"},"had_output":false}
4 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"authentication"}
5 by=ledger session.configured {"policy":{"retry_max":3},"by":"ada"}
-- state retry --
retry: {"state":"abandoned","turn":"t1","attempt":0,"reason":"authentication","error":{"kind":"authentication","text":"y"},"same_failures":1,"resumes":0}
-- facts --
6 by=ledger session.configured {"policy":{},"provider_changed":true,"by":"ada"}
-- state retry --
retry: {"turn":"t1","attempt":0,"error":{"kind":"authentication","text":"y"},"same_failures":1,"resumes":0}
-- facts --
7 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"cancelled"}
8 by=ledger session.configured {"policy":{},"provider_changed":true,"by":"ada"}
-- state retry --
retry: {"state":"abandoned","turn":"t1","attempt":0,"reason":"cancelled","error":{"kind":"authentication","text":"y"},"same_failures":1,"resumes":0}
