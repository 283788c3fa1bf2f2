The turn that carried an answer fails, and then its process dies: the retry and the resume name the prompt and the message
(P13, T13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result"}
4/reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
5/ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
5/ledger turn.requested {"turn":"t2","cause":"answer","of_turn":"t1","message":"m1","prompt":"p1"}
6 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"t2","cause":"answer"}
8 turn.failed {"turn":"t2","error":{"kind":"rate_limit","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:10Z","error":{"kind":"rate_limit","text":"x"}}
-- facts --
9/retry retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:10Z","error":{"kind":"rate_limit","text":"x"}}
-- at --
60
-- decide --
turn.requested {"turn":"turn-4c7r55i2xf6phaxry2at","cause":"retry","of_turn":"t2","message":"m1","attempt":1,"prompt":"p1","prompts":["p1"]}
-- state --
retrying last=t2,failed asked=turn-4c7r55i2xf6phaxry2at,retry,of=t2 retry=starting,attempt=1,same=1,resumes=0 prompt=p1,answered
