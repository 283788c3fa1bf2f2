A question outside of any turn is answered, and its process releases the session before it has the answer: one
continuation is requested at once, without a further act of a person (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
3 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
4 session.released {"reason":"done"}
-- decide @60s --
5 turn.requested {"turn":"turn-47gwugojrqecs2ggs23n","cause":"answer","prompt":"p1","prompts":["p1"]}
-- state --
queued prompt=p1,answered requested=turn-47gwugojrqecs2ggs23n,answer
