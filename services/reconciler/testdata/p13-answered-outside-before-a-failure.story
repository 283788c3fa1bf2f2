A person answers a question outside of any turn. Then a turn fails for good, and its process dies. The answer is from before the
failure: nothing begins by itself, and the next turn names it (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
5 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"}}
6 retry.abandoned {"turn":"t1","attempt":1,"reason":"authentication"}
-- owner --
dead
-- decide --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- state --
idle last=t1,failed,authentication prompt=p1,answered retry=abandoned,attempt=1,same=1,resumes=0,authentication
