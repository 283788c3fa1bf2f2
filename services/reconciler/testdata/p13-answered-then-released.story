A question outside of any turn is answered, and its process leaves in good order before it has the answer: the answer is not
left until somebody speaks, one continuation is requested (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
3 by=ledger prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
4 session.released {"reason":"done"}
-- decide @60s --
5 turn.requested {"turn":"turn-47gwugojrqecs2ggs23n","cause":"answer","prompt":"p1","prompts":["p1"]}
-- state --
queued prompt=p1,answered requested=turn-47gwugojrqecs2ggs23n,answer
