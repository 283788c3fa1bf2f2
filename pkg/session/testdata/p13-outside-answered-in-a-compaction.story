A turn is stopped for a compaction. A question of an earlier process, outside of any turn, is answered meanwhile. The
answer requests no turn: the turn after the compaction names it (P13, C11).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 session.claimed {"incarnation":"18"}
4 by=harness message.accepted {"message":"m0","content":"fix the login","by":"ada"}
4 by=harness turn.started {"turn":"t1","cause":"message","message":"m0"}
5 by=compaction turn.stop_requested {"turn":"t1","actor":"compaction"}
5 by=compaction compaction.requested {"compaction":"k1","reason":"mid-stream","follow_up":"continue","message":"m0"}
7 turn.stopped {"turn":"t1","actor":"compaction"}
8 compaction.started {"compaction":"k1"}
-- request @9s --
answer {"prompt":"p0","answers":[],"by":"ada"}
-- result --
9 prompt.answered {"prompt":"p0","answers":[],"by":"ada","owed":true}
