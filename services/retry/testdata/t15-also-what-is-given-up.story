Retry now works for failures that are not retried automatically, and while automatic retry is off; such a request of a
person is not taken back (T15, T8, T17).

-- facts --
1 session.opened {"incarnation":"17","policy":{"auto_retry":false}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"quota","text":"x"},"had_output":false}
-- decide --
4 retry.abandoned {"turn":"t1","attempt":0,"reason":"quota"}
-- request --
now {"by":"ada"}
-- result --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- decide --
(none)
-- state --
retrying owned-by=17 last=t1,failed,quota requested=turn-xvry7jgnky2udt6aoshg,retry,of=t1,message=m1 retry=starting,attempt=1,same=0,resumes=0 auto-retry=off
-- facts --
6 turn.started {"turn":"$requested"}
7 turn.failed {"turn":"$turn","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
8 retry.abandoned {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":1,"reason":"disabled_by_user"}
-- state --
idle owned-by=17 last=turn-xvry7jgnky2udt6aoshg,failed,server_error retry=abandoned,attempt=1,same=1,resumes=0,disabled_by_user auto-retry=off
