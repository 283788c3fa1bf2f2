A running call is not interrupted: its turn is stopped when no call runs (C5).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
3 tool.started {"call":"b1","turn":"t1","name":"serve","background":true}
4 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
(none)
-- facts --
5 tool.completed {"call":"c1","output":"ok"}
-- decide --
6 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
6 compaction.requested {"compaction":"compaction-donma7egrjgcgstubisz","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
