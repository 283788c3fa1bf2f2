A session has had no turn. Its process asked two questions outside of turns and is gone; one is answered while the other
one blocks. A person stops the session with force: when the other question is dismissed, no turn begins for the answer,
and the next turn names it (R15, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"p2","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @5s --
answer {"prompt":"p1","answers":[],"by":"ada"}
stop {"by":"ben","force":true}
dismiss {"prompt":"p2","by":"ben"}
-- result --
5 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
6 turn.requested {"turn":"turn-k3w5d7nx37asuewccxi6","cause":"message","prompt":"p1","prompts":["p1"]}
6 turn.stop_requested {"turn":"turn-k3w5d7nx37asuewccxi6","actor":"person","by":"ben"}
7 prompt.dismissed {"prompt":"p2","by":"ben"}
-- state --
idle last=turn-k3w5d7nx37asuewccxi6,stopped prompt=p1,answered prompt=p2,dismissed
-- state held_seq stopped_seq last_turn prompts --
held_seq: 6
stopped_seq: 6
last_turn: {"id":"turn-k3w5d7nx37asuewccxi6","outcome":"stopped","at":"@5s","prompts":[{"prompt":"p1","status":"answered","seq":5,"asked":2}],"cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":6}
prompts: {"p1":{"kind":"question","since":"@2s","updated_at":"@5s","status":"answered","epoch":1,"blocking":true,"seq":2,"settled_seq":5,"on_owner_loss":"keep","delivery":"callback","deadline":null},"p2":{"kind":"question","since":"@3s","updated_at":"@5s","status":"dismissed","epoch":1,"blocking":true,"seq":3,"settled_seq":7,"on_owner_loss":"keep","delivery":"callback","deadline":null}}
