The same id requested again while it is open is one entry with the newer body: armed_at stays, updated_at moves (P3).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","title":"first","questions":[{"id":"q","question":"Old?"}]}
3 @62s prompt.requested {"prompt":"p1","kind":"plan","delivery":"callback","title":"second","questions":[{"id":"q","question":"New?"}]}
-- pending --
p1
-- blocker p1 kind title questions armed_at updated_at seq --
kind: "plan"
title: "second"
questions: [{"id":"q","question":"New?","options":[],"multi":false,"custom":false}]
armed_at: "@2s"
updated_at: "@62s"
seq: 3
-- ignored --
(none)
-- facts --
4 @63s by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 @64s session.claimed {"incarnation":"18"}
-- state epoch prompts --
epoch: 2
prompts: {"p1":{"kind":"plan","since":"@2s","updated_at":"@62s","status":"awaiting","epoch":1,"blocking":true,"seq":3,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null}}
-- facts --
6 @65s prompt.requested {"prompt":"p1","kind":"plan","delivery":"callback","title":"third"}
-- state epoch prompts --
epoch: 2
prompts: {"p1":{"kind":"plan","since":"@2s","updated_at":"@65s","status":"awaiting","epoch":2,"blocking":true,"seq":6,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null}}
-- blocker p1 title armed_at updated_at owned --
title: "third"
armed_at: "@2s"
updated_at: "@65s"
owned: true
