A process loses its lease while its Asks wait. The answers are in the log before the process claims its session again. In the
claim it says which of these decisions its Asks wait for: they stay with the living owner, and no turn is requested for them.
A decision that no Ask waits for is owed, also when an Ask gives up after the claim (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"waits","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 prompt.requested {"prompt":"ends","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
4 prompt.requested {"prompt":"left","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
5 prompt.requested {"prompt":"open","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
6 prompt.requested {"prompt":"gone","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
6 prompt.withdrawn {"prompt":"gone","reason":"not-needed"}
-- request @12s --
answer {"prompt":"waits","answers":[],"by":"ada"}
answer {"prompt":"ends","answers":[],"by":"ada"}
answer {"prompt":"left","answers":[],"by":"ada"}
-- result --
7 prompt.answered {"prompt":"waits","answers":[],"by":"ada","owed":true}
8 prompt.answered {"prompt":"ends","answers":[],"by":"ada","owed":true}
9 prompt.answered {"prompt":"left","answers":[],"by":"ada","owed":true}
-- facts --
10 session.claimed {"incarnation":"18"}
10 prompt.attended {"prompt":"waits"}
10 prompt.attended {"prompt":"ends"}
10 prompt.attended {"prompt":"open"}
10 prompt.attended {"prompt":"gone"}
10 prompt.attended {"prompt":"none"}
-- state prompts --
prompts: {"ends":{"kind":"question","since":"@3s","updated_at":"@12s","status":"answered","epoch":2,"blocking":false,"seq":3,"settled_seq":8,"on_owner_loss":"keep","delivery":"callback","deadline":null},"left":{"kind":"question","since":"@4s","updated_at":"@12s","status":"answered","epoch":1,"blocking":false,"seq":4,"settled_seq":9,"on_owner_loss":"keep","delivery":"callback","deadline":null},"open":{"kind":"question","since":"@5s","updated_at":"@5s","status":"awaiting","epoch":1,"blocking":false,"seq":5,"settled_seq":0,"on_owner_loss":"keep","delivery":"callback","deadline":null},"waits":{"kind":"question","since":"@2s","updated_at":"@12s","status":"answered","epoch":2,"blocking":false,"seq":2,"settled_seq":7,"on_owner_loss":"keep","delivery":"callback","deadline":null}}
-- ignored --
10: 3, the last prompt.attended by harness: unknown
-- request @16s --
continue {"ofturn":""}
-- result --
11 turn.requested {"turn":"turn-osuslgz5dgntvswu7sfm","cause":"answer","prompt":"left","prompts":["left"]}
-- facts --
12 prompt.unattended {"prompt":"ends"}
13 prompt.attended {"prompt":"ends"}
14 prompt.unattended {"prompt":"ends"}
15 prompt.delivered {"prompt":"waits"}
16 prompt.attended {"prompt":"waits"}
-- state prompts --
prompts: {"ends":{"kind":"question","since":"@3s","updated_at":"@12s","status":"answered","epoch":2,"blocking":false,"seq":3,"settled_seq":8,"on_owner_loss":"keep","delivery":"callback","deadline":null,"unattended":true},"left":{"kind":"question","since":"@4s","updated_at":"@12s","status":"answered","epoch":1,"blocking":false,"seq":4,"settled_seq":9,"on_owner_loss":"keep","delivery":"callback","deadline":null},"open":{"kind":"question","since":"@5s","updated_at":"@5s","status":"awaiting","epoch":1,"blocking":false,"seq":5,"settled_seq":0,"on_owner_loss":"keep","delivery":"callback","deadline":null}}
-- ignored --
16: 1, the last prompt.attended by harness: closed-id
-- request @19s --
continue {"ofturn":""}
-- result --
17 turn.requested {"turn":"turn-2y3cwk4clot7hfwbcmvj","cause":"answer","prompt":"ends","prompts":["ends","left"]}
