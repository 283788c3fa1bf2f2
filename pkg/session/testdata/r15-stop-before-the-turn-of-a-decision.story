A decision calls for a turn in a moment. A person stops the session before the turn is requested: no turn begins for
the decision, and the next turn of a person names it (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 prompt.unattended {"prompt":"p1"}
5 turn.completed {"turn":"t1"}
-- request @12s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
-- request @13s --
stop {"by":"ben"}
-- result --
7 turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
-- request @14s --
stop {"by":"ben"}
-- result --
nothing to append, see 7
-- state --
idle owned-by=17 last=t1,completed prompt=p1,answered stop=t1,person
-- work --
harness: "h"
session: "s"
epoch: 1
owned: true
seq: 7
stop: {"turn":"t1","actor":"person"}
prompts: {"p1":{"status":"answered","by":"ada"}}
