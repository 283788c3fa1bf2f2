A question outside of any turn, and one of a call in the background that outlived its turn, are the living owner's: decisions
about them are left to it. When nothing there waits for them any more, the next request for a turn names them. A request of
the same question takes that back. A question of the open turn stays with that turn (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
3 prompt.requested {"prompt":"call","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","blocking":false}
4 turn.completed {"turn":"t1"}
5 prompt.requested {"prompt":"alone","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
6 prompt.requested {"prompt":"again","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
7 prompt.unattended {"prompt":"call"}
8 prompt.unattended {"prompt":"alone"}
9 prompt.unattended {"prompt":"again"}
10 prompt.requested {"prompt":"again","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
11 prompt.unattended {"prompt":"none"}
-- request @12s --
answer {"prompt":"call","answers":[],"by":"ada"}
-- result --
12 prompt.answered {"prompt":"call","answers":[],"by":"ada","owed":true}
-- request @13s --
answer {"prompt":"alone","answers":[],"by":"ada"}
-- result --
13 prompt.answered {"prompt":"alone","answers":[],"by":"ada","owed":true}
-- request @14s --
answer {"prompt":"again","answers":[],"by":"ada"}
-- result --
14 prompt.answered {"prompt":"again","answers":[],"by":"ada","owed":true}
-- request @15s --
continue {"ofturn":""}
-- result --
15 turn.requested {"turn":"turn-sil6tzqvyg6vcche4347","cause":"answer","prompt":"call","prompts":["call","alone"]}
-- state prompts --
prompts: {"again":{"kind":"question","since":"@6s","updated_at":"@14s","status":"answered","epoch":1,"blocking":false,"seq":10,"settled_seq":14,"on_owner_loss":"keep","delivery":"callback","deadline":null},"alone":{"kind":"question","since":"@5s","updated_at":"@13s","status":"answered","epoch":1,"blocking":false,"seq":5,"settled_seq":13,"on_owner_loss":"keep","delivery":"callback","deadline":null,"unattended":true},"call":{"kind":"question","call":"c1","tool":"watch","turn":"t1","since":"@3s","updated_at":"@12s","status":"answered","epoch":1,"blocking":false,"seq":3,"settled_seq":12,"on_owner_loss":"keep","delivery":"tool-result","deadline":null,"unattended":true}}
-- ignored --
11: 1, the last prompt.unattended by harness: unknown
