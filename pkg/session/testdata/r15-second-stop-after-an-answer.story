A person stops a turn whose process has not read it yet, and another person answers the turn's question. The first one
stops again: that stop is stored, because the answer is newer than the first stop. A third stop appends nothing (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result"}
-- request @4s --
stop {"by":"ada","force":true}
-- result --
4 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- request @5s --
answer {"prompt":"p1","answers":[],"by":"ben"}
-- result --
5 prompt.answered {"prompt":"p1","answers":[],"by":"ben","owed":true}
-- request @6s --
stop {"by":"ada"}
stop {"by":"ada"}
-- result --
6 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
nothing to append, see 6
-- state held_seq stopped_seq pending --
held_seq: 6
stopped_seq: 6
pending: {"stop":{"turn":"t1","actor":"person","by":"ada","at":"@6s","seq":6}}
