A retry of an unknown turn is neither scheduled nor invented (T9).

-- facts --
1 session.opened {"incarnation":"17"}
2 late by=retry retry.scheduled {"turn":"t0","attempt":1,"delay_ms":1,"due_at":"@9s","error":{"kind":"e","text":"x"}}
3 late by=retry retry.abandoned {"turn":"t0","attempt":1,"reason":"x"}
-- decide @60s --
(none)
-- request --
now {"by":"ada"}
-- result --
409 nothing to retry: the last turn did not fail
  {"status":"idle","at":"@3s","seq":3}
-- facts --
4 by=retry turn.requested {"turn":"t5","cause":"retry","of_turn":"t0"}
-- decide --
(none)
-- state --
retrying owned-by=17 requested=t5,retry,of=t0 retry=starting,attempt=0,same=0,resumes=0
-- facts --
5 by=ledger turn.stop_requested {"turn":"t5","actor":"person","by":"ada"}
-- decide --
(none)
-- state --
idle owned-by=17 last=t5,stopped stop=t5,person retry=abandoned,attempt=0,same=0,resumes=0,stopped
