Owner alive: the answer is in its work at once; it closes the call and continues in its turn, and no new turn is
requested (P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
-- state phase --
phase: "waiting"
-- request @4s --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"the left one"}],"by":"ada"}
-- result --
4 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"the left one"}],"by":"ada","owed":true}
-- work --
harness: "h"
session: "s"
epoch: 1
owned: true
seq: 4
prompts: {"p1":{"status":"answered","answers":[{"question":"q","selected":[],"text":"the left one"}],"by":"ada"}}
-- state phase --
phase: "running"
-- blocker p1 status delivered_at answers tool turn --
status: "answered"
delivered_at: (nothing)
answers: [{"question":"q","selected":[],"text":"the left one"}]
tool: {"call":"c1","name":"ask"}
turn: "t1"
-- facts --
5 tool.completed {"call":"c1","output":"the left one"}
-- work --
(none)
-- blocker p1 status delivered_at --
status: "answered"
delivered_at: "@5s"
-- state phase turn pending --
phase: "running"
turn: {"id":"t1","cause":"message","synthetic":false,"since":"@2s","attempt":1,"epoch":1}
pending: (nothing)
