A retry of a turn that nobody knows is not scheduled, nor made up (T9).

-- facts --
1 session.opened {"incarnation":"17"}
late 2/retry retry.scheduled {"turn":"t0","attempt":1,"delay_ms":1,"due_at":"2026-03-01T12:00:09Z","error":{"kind":"e","text":"x"}}
late 3/retry retry.abandoned {"turn":"t0","attempt":1,"reason":"x"}
-- at --
60
-- decide --
nothing
-- wish --
now ada
= 409 nothing to retry: the last turn did not fail [idle: ]
-- facts --
4/retry turn.requested {"turn":"t5","cause":"retry","of_turn":"t0"}
-- decide --
nothing
-- state --
retrying asked=t5,retry,of=t0 retry=starting,attempt=0,same=0,resumes=0
-- facts --
5/ledger turn.stop_requested {"turn":"t5","actor":"person","by":"ada"}
-- decide --
nothing
-- state --
idle last=t5,stopped retry=abandoned,attempt=0,same=0,resumes=0,reason=stopped
