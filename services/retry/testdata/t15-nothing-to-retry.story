Without a failure there is nothing to retry, cancel or resume: the refusal has the present state (T15, T16).

-- request --
now {"by":"ada"}
-- result --
404 no such session: h/s
  {"what":"session"}
-- facts --
1 session.opened {"incarnation":"17"}
-- request --
now {"by":"ada"}
-- result --
409 nothing to retry: the last turn did not fail
  {"status":"idle","at":"@1s","seq":1}
-- request --
cancel {"by":"ada"}
-- result --
409 no retry is planned
  {"status":"idle","at":"@1s","seq":1}
-- request --
resume {"by":"ada"}
-- result --
409 nothing to resume: no turn failed or was interrupted last, and no message waits behind one that was stopped
  {"status":"idle","at":"@1s","seq":1}
-- facts --
2 turn.started {"turn":"t1","cause":"message"}
-- request --
now {"by":"ada"}
-- result --
409 turn t1 has not ended
  {"status":"running","reason":"turn t1","at":"@2s","seq":2}
-- request --
cancel {"by":"ada"}
-- result --
409 no retry is planned
  {"status":"running","reason":"turn t1","at":"@2s","seq":2}
-- request --
resume {"by":"ada"}
-- result --
409 turn t1 has not ended
  {"status":"running","reason":"turn t1","at":"@2s","seq":2}
-- facts --
3 turn.completed {"turn":"t1"}
-- request --
now {"by":"ada"}
-- result --
409 nothing to retry: the last turn did not fail
  {"status":"idle","reason":"last turn completed","at":"@3s","seq":3}
-- request --
cancel {"by":"ada"}
-- result --
409 no retry is planned
  {"status":"idle","reason":"last turn completed","at":"@3s","seq":3}
-- request --
resume {"by":"ada"}
-- result --
409 nothing to resume: no turn failed or was interrupted last, and no message waits behind one that was stopped
  {"status":"idle","reason":"last turn completed","at":"@3s","seq":3}
-- facts --
4 by=compaction message.accepted {"message":"m2","content":"x","synthetic":false,"by":"ada"}
4 by=compaction turn.requested {"turn":"t2","cause":"message","message":"m2"}
-- request --
now {"by":"ada"}
-- result --
409 turn t2 is already requested
  {"status":"queued","reason":"turn t2","at":"@4s","seq":4}
-- request --
cancel {"by":"ada"}
-- result --
409 no retry is planned
  {"status":"queued","reason":"turn t2","at":"@4s","seq":4}
-- request --
resume {"by":"ada"}
-- result --
409 turn t2 is already requested
  {"status":"queued","reason":"turn t2","at":"@4s","seq":4}
-- facts --
5 by=ledger session.closed {"reason":"archived","by":"ada"}
-- request --
now {"by":"ada"}
-- result --
409 the session is closed (archived): open another one
  {"status":"closed","reason":"archived","by":"ada","at":"@5s","seq":5}
-- request --
cancel {"by":"ada"}
-- result --
409 the session is closed (archived): open another one
  {"status":"closed","reason":"archived","by":"ada","at":"@5s","seq":5}
-- request --
resume {"by":"ada"}
-- result --
409 the session is closed (archived): open another one
  {"status":"closed","reason":"archived","by":"ada","at":"@5s","seq":5}
