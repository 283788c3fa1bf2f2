A screen that connects late sees every open prompt: views are state, not notifications (P17).

-- facts --
1 session.opened {"incarnation":"17","title":"Fix it"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","title":"Which?","deadline":"2026-01-01T12:00:00+01:00"}
4 @10803s usage.reported {"turn":"t1","model":"m","tokens":{"input":1,"cache_read":0,"cache_write":0,"output":0,"reasoning":0}}
-- pending --
p1
-- blocker p1 --
harness: "h"
session: "s"
root: "s"
prompt: "p1"
kind: "question"
title: "Which?"
status: "awaiting"
armed_at: "@3s"
updated_at: "@3s"
owned: true
on_owner_loss: "expire"
blocking: true
deadline: "@39600s"
turn: "t1"
seq: 3
