A retry that was asked for without any that was planned has nothing that could be given up (T8).

-- facts --
1 session.opened {"incarnation":"17","policy":{"auto_retry":false}}
2/retry turn.requested {"turn":"t2","cause":"retry"}
-- state --
retrying asked=t2,retry,of= retry=starting,attempt=0,same=0,resumes=0 auto_retry=off
-- decide --
nothing
