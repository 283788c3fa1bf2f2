Where nothing failed there is nothing to retry, cancel or resume: the refusal says what stands (T15, T16).

-- wish --
now ada
= 404 no such session: h/s
-- facts --
1 session.opened {"incarnation":"17"}
-- wish --
now ada
= 409 nothing to retry: the last turn did not fail [idle: ]
cancel ada
= 409 no retry is planned [idle: ]
resume ada
= 409 nothing to resume: no turn failed or was interrupted last, and no message waits behind one that was stopped [idle: ]
-- facts --
2 turn.started {"turn":"t1","cause":"message"}
-- wish --
now ada
= 409 turn t1 has not ended [running: turn t1]
cancel ada
= 409 no retry is planned [running: turn t1]
resume ada
= 409 turn t1 has not ended [running: turn t1]
-- facts --
3 turn.completed {"turn":"t1"}
-- wish --
now ada
= 409 nothing to retry: the last turn did not fail [idle: last turn completed]
cancel ada
= 409 no retry is planned [idle: last turn completed]
resume ada
= 409 nothing to resume: no turn failed or was interrupted last, and no message waits behind one that was stopped [idle: last turn completed]
-- facts --
4/compaction message.accepted {"message":"m2","content":"x","synthetic":false,"by":"ada"}
4/compaction turn.requested {"turn":"t2","cause":"message","message":"m2"}
-- wish --
now ada
= 409 turn t2 is already requested [queued: turn t2]
cancel ada
= 409 no retry is planned [queued: turn t2]
resume ada
= 409 turn t2 is already requested [queued: turn t2]
-- facts --
5/ledger session.closed {"reason":"archived","by":"ada"}
-- wish --
now ada
= 409 the session is closed (archived): open another one [closed: archived]
cancel ada
= 409 the session is closed (archived): open another one [closed: archived]
resume ada
= 409 the session is closed (archived): open another one [closed: archived]
