Owner gone: a rejection and a dismissal close the call too, as errors, and continue once nothing blocks (P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
2 tool.started {"call":"c2","turn":"t1","name":"bash"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"tool-result"}
3 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"permission","delivery":"tool-result"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @5s --
dismiss {"prompt":"p2","by":"ada"}
-- result --
5 prompt.dismissed {"prompt":"p2","by":"ada"}
5 tool.failed {"call":"c2","error":{"kind":"dismissed","text":""},"synthetic":true}
-- request @6s --
reject {"prompt":"p1","text":"use make clean","by":"ada"}
-- result --
6 prompt.rejected {"prompt":"p1","text":"use make clean","by":"ada","owed":true}
6 tool.failed {"call":"c1","error":{"kind":"rejected","text":"use make clean"},"synthetic":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p2","p1"]}
