A question outside of any turn is answered, and its process leaves in good order before it has the answer: the answer is not
left until somebody speaks, one continuation is requested (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
3/ledger prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
4 session.released {"reason":"done"}
-- at --
60
-- decide --
s turn.requested {"turn":"turn-47gwugojrqecs2ggs23n","cause":"answer","prompt":"p1","prompts":["p1"]}
-- state --
s queued prompt=p1,answered pending=answer
