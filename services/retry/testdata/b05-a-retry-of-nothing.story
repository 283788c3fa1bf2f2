A requested retry without a planned one cannot be abandoned (T8).

-- facts --
1 session.opened {"incarnation":"17","policy":{"auto_retry":false}}
2 by=retry turn.requested {"turn":"t2","cause":"retry"}
-- state --
retrying owned-by=17 requested=t2,retry retry=starting,attempt=0,same=0,resumes=0 auto-retry=off
-- decide --
(none)
