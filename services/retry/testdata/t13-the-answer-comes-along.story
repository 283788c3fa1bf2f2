The turn that carried an answer fails, and then its process dies: the retry and the resume name the prompt and the message
(P13, T13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 by=ledger turn.requested {"turn":"t2","cause":"answer","of_turn":"t1","message":"m1","prompt":"p1"}
6 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"t2","cause":"answer"}
8 turn.failed {"turn":"t2","error":{"kind":"rate_limit","text":"x"},"had_output":false}
-- decide --
9 retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"@10s","error":{"kind":"rate_limit","text":"x"}}
-- decide @60s --
10 turn.requested {"turn":"turn-4c7r55i2xf6phaxry2at","cause":"retry","of_turn":"t2","message":"m1","attempt":1,"prompt":"p1","prompts":["p1"]}
-- state --
retrying owned-by=18 last=t2,failed,rate_limit prompt=p1,answered requested=turn-4c7r55i2xf6phaxry2at,retry,of=t2,message=m1 retry=starting,attempt=1,same=1,resumes=0
