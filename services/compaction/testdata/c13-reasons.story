Why an idle session is not compacted (C13).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
-- request --
check {}
-- result --
{"would":false,"reason":"disabled","used":0,"limit":1000}
-- facts --
2 by=ledger session.configured {"policy":{"idle_compaction_after_s":60},"by":"ada"}
-- request --
check {}
-- result --
{"would":false,"reason":"no_usage","used":0,"limit":1000}
-- decide --
(none)
-- facts --
3 turn.started {"turn":"t1","cause":"message"}
4 usage.reported {"turn":"t1","model":"m","tokens":{"input":300}}
-- request --
check {}
-- result --
{"would":false,"reason":"running","used":300,"limit":1000}
-- facts --
5 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
-- request --
check {}
-- result --
{"would":false,"reason":"waiting","used":300,"limit":1000}
-- facts --
6 prompt.withdrawn {"prompt":"p1","reason":"gone"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
7 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- facts --
8 turn.failed {"turn":"t1","error":{"kind":"quota","text":"x"},"had_output":false}
9 by=retry retry.abandoned {"turn":"t1","attempt":0,"reason":"quota"}
-- request --
check {}
-- result --
{"would":false,"reason":"queued","used":300,"limit":1000}
-- request --
withdraw {"message":"m1","by":"ada"}
-- result --
10 message.withdrawn {"message":"m1","by":"ada"}
-- decide --
(none)
-- request --
check {}
-- result --
{"would":false,"reason":"waiting","used":300,"limit":1000}
-- facts --
11 turn.started {"turn":"t2","cause":"message"}
12 turn.completed {"turn":"t2"}
13 session.released {}
-- decide --
(none)
-- request --
check {}
-- result --
{"would":false,"reason":"waiting","used":300,"limit":1000}
-- facts --
14 session.claimed {"incarnation":"18"}
-- request --
check {}
-- result --
{"would":false,"reason":"not_idle_long_enough","used":300,"limit":1000,"at":"@72s"}
-- facts --
15 session.closed {"reason":"archived"}
-- request --
check {}
-- result --
{"would":false,"reason":"closed","used":300,"limit":1000}
-- request --
send {"message":"m9","content":"x","by":"ada"}
-- result --
409 the session is closed (archived): open another one
  {"status":"closed","reason":"archived","at":"@15s","seq":15}
