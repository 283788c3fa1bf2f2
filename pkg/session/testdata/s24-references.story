An unknown turn, call or prompt is ignored; but a call or a prompt that names an unknown turn is opened without one (§2.4).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.completed {"turn":"t1"}
3 turn.failed {"turn":"t1","error":{"kind":"x","text":"y"},"had_output":false}
4 turn.stopped {"turn":"t1","actor":"person"}
5 tool.completed {"call":"c1"}
6 prompt.delivered {"prompt":"p1"}
7 by=ledger turn.stop_requested {"turn":"t1","actor":"person"}
8 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":1,"due_at":"@6s","error":{"kind":"x","text":"y"}}
9 by=retry retry.abandoned {"turn":"t1","attempt":1,"reason":"x"}
10 usage.reported {"turn":"t1","model":"m","tokens":{"input":1}}
11 compaction.completed {"compaction":"k1"}
-- ignored --
2: 1, the last turn.completed by harness: unknown
3: 1, the last turn.failed by harness: unknown
4: 1, the last turn.stopped by harness: unknown
5: 1, the last tool.completed by harness: unknown
6: 1, the last prompt.delivered by harness: unknown
7: 1, the last turn.stop_requested by ledger: unknown
8: 1, the last retry.scheduled by retry: unknown
9: 1, the last retry.abandoned by retry: unknown
10: 1, the last usage.reported by harness: unknown
11: 1, the last compaction.completed by harness: unknown
-- endings --
(none)
-- facts --
12 tool.started {"call":"c1","turn":"t1","name":"bash"}
13 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
-- ignored --
(none)
-- state tools prompts --
tools: {"c1":{"name":"bash","since":"@12s","epoch":1,"background":false}}
prompts: {"p1":{"kind":"permission","since":"@13s","updated_at":"@13s","status":"awaiting","epoch":1,"blocking":true,"seq":13,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null}}
-- facts --
14 turn.started {"turn":"t2","cause":"message"}
15 turn.completed {"turn":"t2"}
-- state tools phase --
tools: {"c1":{"name":"bash","since":"@12s","epoch":1,"background":false}}
phase: "waiting"
