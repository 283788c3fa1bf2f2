Calls in the background outlive their turn, with their prompts; the end of the session ends them too (§2.1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"serve","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"callback"}
4 turn.completed {"turn":"t1"}
-- state phase tools turn --
phase: "waiting"
tools: {"c1":{"name":"serve","turn":"t1","since":"@2s","epoch":1,"background":true}}
turn: (nothing)
-- pending --
p1
-- facts --
5 tool.completed {"call":"c1"}
-- pending --
(none)
-- endings --
4 turn t1 completed
5 tool c1 completed
5 prompt p1 withdrawn (call-ended)
