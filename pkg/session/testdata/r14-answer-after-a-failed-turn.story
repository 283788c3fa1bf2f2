A turn that failed for good is not held: with resume hold, the answer to a question outside of that turn gets a turn of
its own (P13, R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 turn.failed {"turn":"t1","error":{"kind":"authentication","text":"x"},"had_output":false}
5 retry.abandoned {"turn":"t1","attempt":0,"reason":"authentication"}
6 session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
-- result --
7 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada","owed":true}
7 turn.requested {"turn":"turn-6esm2htnyahzgxkuevnd","cause":"answer","prompt":"p1","prompts":["p1"]}
-- state --
queued last=t1,failed,authentication prompt=p1,answered requested=turn-6esm2htnyahzgxkuevnd,answer retry=abandoned,attempt=0,same=1,resumes=0,authentication
