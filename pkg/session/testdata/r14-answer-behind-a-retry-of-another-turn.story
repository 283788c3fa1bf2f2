With resume hold, a turn is interrupted while the retry of an earlier turn is planned. An answer takes the place of no
planned retry: the reconciler requests its turn once the retry is abandoned (P13, R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
5 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@6s","error":{"kind":"server_error","text":"x"}}
6 turn.started {"turn":"t2","cause":"follow-up","synthetic":true}
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 turn.interrupted {"turn":"t2","reason":"owner-lost"}
-- request --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
-- result --
8 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada","owed":true}
-- state --
retrying last=t2,interrupted,owner-lost prompt=p1,answered retry=scheduled,attempt=1,same=1,resumes=0,due=@6s
