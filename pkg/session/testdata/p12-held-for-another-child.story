A call of another turn that is held for a child, or the asking call itself, does not hold the continuation back (P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t0","cause":"message"}
2 tool.started {"call":"c0","turn":"t0","name":"task","background":true}
3 turn.completed {"turn":"t0"}
4 turn.started {"turn":"t1","cause":"message"}
4 tool.started {"call":"c1","turn":"t1","name":"task"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"c0","child":"s2"},{"call":"c1","child":"s3"}]}
-- request @6s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
6 tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state phase --
phase: "waiting"
