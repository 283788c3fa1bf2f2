A question whose answer is the call's output stays open, with its call and its turn; the other open items are closed
(P12, P17).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"ask","turn":"t1","name":"question"}
4 tool.started {"call":"c1","turn":"t1","name":"bash"}
5 prompt.requested {"prompt":"p1","turn":"t1","call":"ask","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
-- owner --
dead
-- decide @60s --
6 session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
-- state --
waiting turn=t1,message call=ask prompt=p1,awaiting
