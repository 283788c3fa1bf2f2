The only fact that counts in a session that was never opened is its close: by the ledger, in its first epoch (§2.4).

-- facts --
1 by=ledger session.configured {"policy":{"auto_retry":false},"by":"ada"}
2 by=ledger epoch=2 session.closed {"reason":"never-opened"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- ignored --
1: 1, the last session.configured by ledger: not-open
2: 1, the last session.closed by ledger: not-open
3: 1, the last session.orphaned by reconciler: not-open
-- state phase policy closed --
phase: "idle"
policy: {"auto_retry":true,"retry_max":0,"resume":"auto","resume_max":10,"compaction_threshold":0.7,"context_limit":0,"idle_compaction_after_s":0,"stall_after_s":600}
closed: (nothing)
