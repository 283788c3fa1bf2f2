Nothing to compact where nothing is, or where it is over (C16).

-- wish --
compact {"by":"ada"}
-- comes to --
404 no such session: h/s
  {"what":"session"}
-- wish --
send {"message":"m1","content":"x","by":"ada"}
-- comes to --
404 no such session: h/s
  {"what":"session"}
-- wish --
withdraw {"message":"m1","by":"ada"}
-- comes to --
404 no such session: h/s
  {"what":"session"}
-- wish --
check {}
-- comes to --
404 no such session: h/s
-- facts --
1 session.opened {"incarnation":"17"}
2 session.closed {"reason":"finished"}
-- wish --
compact {"by":"ada"}
-- comes to --
409 the session is closed (finished): open another one
  {"status":"closed","reason":"finished","at":"2026-03-01T12:00:02Z","seq":2}
-- wish --
withdraw {"message":"m1","by":"ada"}
-- comes to --
409 the session is closed (finished): open another one
  {"status":"closed","reason":"finished","at":"2026-03-01T12:00:02Z","seq":2}
