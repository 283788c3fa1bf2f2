The asker's turn is over: the continuation still carries its options, and no closed call is closed again (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","options":{"model":"big"}}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 by=ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
5 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":true}
6 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @7s --
settle {"prompt":"p1"}
-- result --
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","options":{"model":"big"},"prompt":"p1","prompts":["p1"]}
