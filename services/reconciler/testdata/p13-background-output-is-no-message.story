A call in the background, outside of any turn, asks a question whose answer may become a message. The answer is stored,
and the process dies. Recovery ends the call with the answer. The answer does not become a message, too (P13, V10).

-- facts --
1 session.opened {"incarnation":"17"}
2 tool.started {"call":"c1","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","call":"c1","kind":"question","delivery":"message","on_owner_loss":"keep"}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- owner --
dead
-- decide @60s --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
5 turn.requested {"turn":"turn-47gwugojrqecs2ggs23n","cause":"answer","prompt":"p1","prompts":["p1"]}
-- decide @61s --
(none)
-- state prompts queue --
prompts: {"p1":{"kind":"question","call":"c1","tool":"watch","since":"@3s","updated_at":"@4s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":4,"on_owner_loss":"keep","delivery":"tool-result","deadline":null}}
queue: (nothing)
