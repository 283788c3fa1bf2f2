A retry that a person requests names the person, and restarts the limits of automatic retries; the count of attempts
continues; a newer request replaces it (§2.2, §2.6).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"quota","text":"x"},"had_output":false}
4 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"quota"}
5 by=retry source=/person/ada turn.requested {"turn":"t2","cause":"retry","of_turn":"t1","attempt":1}
-- state retry pending phase --
retry: {"state":"starting","turn":"t1","attempt":1,"error":{"kind":"quota","text":"x"},"same_failures":0,"resumes":0}
pending: {"turn":{"turn":"t2","cause":"retry","of_turn":"t1","attempt":1,"by":"ada","at":"@5s","seq":5}}
phase: "retrying"
-- facts --
6 turn.started {"turn":"t2","cause":"retry","of_turn":"t1"}
7 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 by=reconciler turn.interrupted {"turn":"t2","reason":"owner-lost"}
8 by=retry turn.requested {"turn":"t3","cause":"resume","of_turn":"t2","attempt":2}
-- state retry --
retry: {"state":"starting","turn":"t2","attempt":2,"error":{"kind":"quota","text":"x"},"same_failures":0,"resumes":1}
-- facts --
9 by=compaction turn.requested {"turn":"t4","cause":"message","message":"m1"}
-- state retry pending phase --
retry: {"turn":"t2","attempt":2,"error":{"kind":"quota","text":"x"},"same_failures":0,"resumes":1}
pending: {"turn":{"turn":"t4","cause":"message","message":"m1","attempt":0,"at":"@9s","seq":9}}
phase: "queued"
-- facts --
10 by=retry source=/person/ada turn.requested {"turn":"t5","cause":"resume","of_turn":"t2","attempt":3}
-- state retry phase --
retry: {"state":"starting","turn":"t2","attempt":3,"error":{"kind":"quota","text":"x"},"same_failures":0,"resumes":1}
phase: "retrying"
