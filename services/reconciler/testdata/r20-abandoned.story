A supervisor has seen its process end, and says how in the lease: the fence shows it (R20).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- owner --
dead because the agent was killed by SIGKILL
-- decide @4s --
4 session.orphaned {"reason":"owner-lost","incarnation":"17","detail":"the agent was killed by SIGKILL"}
4 tool.interrupted {"call":"c1","reason":"owner-lost","outcome":"unknown"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
