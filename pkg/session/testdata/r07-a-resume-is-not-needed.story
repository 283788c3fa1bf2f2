A process adopts a turn for which a resume was requested while it had no owner: the resume is dropped with its retry, and when the
turn is interrupted later, nothing has been decided about that (R7, T10).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"task"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 by=reconciler tool.completed {"call":"c1","synthetic":true}
4 by=reconciler turn.requested {"turn":"t2","cause":"resume","of_turn":"t1"}
-- state retry pending --
retry: {"state":"starting","turn":"t1","attempt":0,"same_failures":0,"resumes":1}
pending: {"turn":{"turn":"t2","cause":"resume","of_turn":"t1","attempt":0,"at":"@4s","seq":4}}
-- facts --
5 session.claimed {"incarnation":"18"}
5 turn.started {"turn":"t1","cause":"message"}
-- state phase retry pending --
phase: "running"
retry: {"attempt":0,"same_failures":0,"resumes":1}
pending: (nothing)
-- facts --
6 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"18"}
6 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state phase retry pending --
phase: "interrupted"
retry: {"attempt":0,"same_failures":0,"resumes":1}
pending: (nothing)
