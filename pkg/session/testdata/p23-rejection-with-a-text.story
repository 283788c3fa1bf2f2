Rejecting with a text is a correction that the model reads; without one it is a plain no (P23).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
2 tool.started {"call":"c2","turn":"t1","name":"bash"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"tool-result"}
3 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"permission","delivery":"tool-result"}
-- request @4s --
reject {"prompt":"p1","text":"use make clean","by":"ada"}
-- result --
4 prompt.rejected {"prompt":"p1","text":"use make clean","by":"ada","owed":true}
-- request @5s --
reject {"prompt":"p2","by":"ada"}
-- result --
5 prompt.rejected {"prompt":"p2","by":"ada","owed":true}
-- request --
reject {"prompt":"p1","text":"use make clean","by":"ada"}
-- result --
nothing to append, see 4
-- request --
reject {"prompt":"p1","text":"something else","by":"bob"}
-- result --
409 prompt p1 was rejected by ada already
  {"status":"rejected","reason":"use make clean","by":"ada","at":"@4s","seq":4,"prompt":"p1"}
-- work prompts --
prompts: {"p1":{"status":"rejected","text":"use make clean","by":"ada","reason":"use make clean"},"p2":{"status":"rejected","by":"ada"}}
-- facts --
6 prompt.delivered {"prompt":"p1","refused":"too late"}
-- request --
reject {"prompt":"p1","text":"use make clean","by":"ada"}
-- result --
nothing to append, see 4
