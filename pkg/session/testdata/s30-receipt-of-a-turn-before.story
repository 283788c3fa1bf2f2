A stop of a turn that has ended is owed no receipt when its process leaves, whatever turn is open by then (§2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=compaction turn.stop_requested {"turn":"t1","actor":"compaction"}
4 turn.completed {"turn":"t1"}
5 turn.started {"turn":"t2","cause":"message"}
-- state pending --
pending: {"stop":{"turn":"t1","actor":"compaction","at":"@3s","seq":3}}
-- facts --
6 session.released {}
-- state pending --
pending: (nothing)
