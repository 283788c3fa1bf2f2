A turn fails for good, and an answer from before the failure waits for a person. A stop is stored: no turn begins for the
answer when the agent has completed a turn of its own (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 turn.started {"turn":"t1","cause":"message","synthetic":true}
4 by=ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
5 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"}}
6 by=retry retry.abandoned {"turn":"t1","attempt":1,"reason":"authentication"}
-- request @8s --
stop {"by":"ben"}
stop {"by":"ben"}
-- result --
7 turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
nothing to append, see 7
-- state --
idle owned-by=17 last=t1,failed,authentication prompt=p1,answered stop=t1,person retry=abandoned,attempt=1,same=1,resumes=0,authentication
