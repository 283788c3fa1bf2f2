A deadline that passed expires the prompt, also in the harness's work, and its call fails with that reason (P19).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","deadline":"@30s"}
4 @33s by=reconciler prompt.expired {"prompt":"p1","reason":"deadline"}
-- work prompts --
prompts: {"p1":{"status":"expired","reason":"deadline"}}
-- blocker p1 status reason deadline closed_at --
status: "expired"
reason: "deadline"
deadline: "@30s"
closed_at: "@33s"
-- state phase --
phase: "running"
-- facts --
5 @34s by=reconciler tool.failed {"call":"c1","error":{"kind":"deadline","text":"no person answered in time"},"synthetic":true}
-- work --
(none)
-- endings --
4 prompt p1 expired (deadline) delivered @34s
5 tool c1 failed (no person answered in time)
