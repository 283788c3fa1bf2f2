An abandoned retry is shown until a person continues; a new provider clears the failures that it solves, and starts
nothing; a person's message enables automatic retry again (§2.6, R4).

-- facts --
1 session.opened {"incarnation":"17","policy":{"auto_retry":false}}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"},"had_output":false}
4 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"authentication"}
-- state retry phase --
retry: {"state":"abandoned","turn":"t1","attempt":0,"reason":"authentication","error":{"kind":"authentication","text":"x"},"same_failures":1,"resumes":0}
phase: "idle"
-- request @5s --
configure {"provider_changed":true,"by":"ada"}
-- result --
5 session.configured {"policy":null,"provider_changed":true,"by":"ada"}
-- state retry phase --
retry: {"turn":"t1","attempt":0,"error":{"kind":"authentication","text":"x"},"same_failures":1,"resumes":0}
phase: "idle"
-- facts --
6 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"no_progress"}
-- request @7s --
configure {"provider_changed":true,"by":"ada"}
-- result --
7 session.configured {"policy":null,"provider_changed":true,"by":"ada"}
-- state retry policy --
retry: {"state":"abandoned","turn":"t1","attempt":0,"reason":"no_progress","error":{"kind":"authentication","text":"x"},"same_failures":1,"resumes":0}
policy: {"auto_retry":false,"retry_max":0,"resume":"auto","resume_max":10,"compaction_threshold":0.7,"context_limit":0,"idle_compaction_after_s":0,"stall_after_s":600}
-- facts --
8 by=compaction message.accepted {"message":"m0","content":"x","synthetic":true}
-- state policy --
policy: {"auto_retry":false,"retry_max":0,"resume":"auto","resume_max":10,"compaction_threshold":0.7,"context_limit":0,"idle_compaction_after_s":0,"stall_after_s":600}
-- facts --
9 by=compaction message.accepted {"message":"m1","content":"x","synthetic":false,"by":"ada"}
-- state policy --
policy: {"auto_retry":true,"retry_max":0,"resume":"auto","resume_max":10,"compaction_threshold":0.7,"context_limit":0,"idle_compaction_after_s":0,"stall_after_s":600}
