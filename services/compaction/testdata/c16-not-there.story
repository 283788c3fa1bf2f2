A compaction of an unknown or closed session is refused (C16).

-- request --
compact {"by":"ada"}
-- result --
404 no such session: h/s
  {"what":"session"}
-- request --
send {"message":"m1","content":"x","by":"ada"}
-- result --
404 no such session: h/s
  {"what":"session"}
-- request --
withdraw {"message":"m1","by":"ada"}
-- result --
404 no such session: h/s
  {"what":"session"}
-- request --
check {}
-- result --
404 no such session: h/s
  {"what":"session"}
-- facts --
1 session.opened {"incarnation":"17"}
2 session.closed {"reason":"finished"}
-- request --
compact {"by":"ada"}
-- result --
409 the session is closed (finished): open another one
  {"status":"closed","reason":"finished","at":"@2s","seq":2}
-- request --
withdraw {"message":"m1","by":"ada"}
-- result --
409 the session is closed (finished): open another one
  {"status":"closed","reason":"finished","at":"@2s","seq":2}
