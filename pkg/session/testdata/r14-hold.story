Resume policy hold: the phase is interrupted and stays so until a person does something (R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
4 session.claimed {"incarnation":"18"}
-- state phase policy --
phase: "interrupted"
policy: {"auto_retry":true,"retry_max":0,"resume":"hold","resume_max":10,"compaction_threshold":0.7,"context_limit":0,"idle_compaction_after_s":0,"stall_after_s":600}
-- request @5s --
configure {"policy":{"resume":null,"resume_max":3},"by":"ada"}
-- result --
5 session.configured {"policy":{"resume":null,"resume_max":3},"by":"ada"}
-- state phase policy --
phase: "interrupted"
policy: {"auto_retry":true,"retry_max":0,"resume":"auto","resume_max":3,"compaction_threshold":0.7,"context_limit":0,"idle_compaction_after_s":0,"stall_after_s":600}
-- request --
configure {"policy":{"resume":"sometimes"},"by":"ada"}
-- result --
400 policy.resume: "sometimes": want auto or hold
  {"field":"policy.resume","reason":"policy.resume: \"sometimes\": want auto or hold"}
-- request --
configure {"policy":{"compaction_threshold":0.05},"by":"ada"}
-- result --
400 policy.compaction_threshold: 0.05: want 0.1 to 1
  {"field":"policy.compaction_threshold","reason":"policy.compaction_threshold: 0.05: want 0.1 to 1"}
-- request --
configure {"by":"ada"}
-- result --
400 nothing to change: give a policy, or provider_changed
  {"field":"policy","reason":"nothing to change: give a policy, or provider_changed"}
-- facts --
6 by=retry turn.requested {"turn":"t2","cause":"resume","of_turn":"t1"}
-- state phase retry --
phase: "retrying"
retry: {"state":"starting","turn":"t1","attempt":0,"same_failures":0,"resumes":1}
