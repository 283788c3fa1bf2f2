Owner gone, prompt kept: one commit has the answer, the call's output and, when nothing blocks any more, one continuation, which ends the waiting turn as continued (P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","options":{"model":"big"}}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
2 tool.started {"call":"c2","turn":"t1","name":"ask"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
3 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"question","delivery":"tool-result"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- state phase owned turn --
phase: "waiting"
owned: false
turn: {"id":"t1","cause":"message","synthetic":false,"since":"@2s","attempt":1,"epoch":1,"options":{"model":"big"}}
-- request @5s --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"left"}],"by":"ada"}
-- result --
5 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"left"}],"by":"ada","owed":true}
5 tool.completed {"call":"c1","output":{"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"left"}]},"synthetic":true}
-- work --
(none)
-- request @6s --
answer {"prompt":"p2","answers":[],"by":"bob"}
-- result --
6 prompt.answered {"prompt":"p2","answers":[],"by":"bob","owed":true}
6 tool.completed {"call":"c2","output":{"questions":[],"answers":[]},"synthetic":true}
6 turn.requested {"turn":"turn-6brocyppzz5cj7s2bleq","cause":"answer","of_turn":"t1","options":{"model":"big"},"prompt":"p2","prompts":["p1","p2"]}
-- work --
harness: "h"
session: "s"
epoch: 1
owned: false
seq: 6
turn: {"turn":"turn-6brocyppzz5cj7s2bleq","cause":"answer","of_turn":"t1","options":{"model":"big"},"attempt":1,"prompt":"p2","prompts":[{"prompt":"p1","seq":5,"questions":[{"id":"q","question":"Which?","options":[],"multi":false,"custom":false}],"status":"answered","answers":[{"question":"q","selected":[],"text":"left"}],"by":"ada"},{"prompt":"p2","seq":6,"status":"answered","by":"bob"}]}
-- state phase retry --
phase: "queued"
retry: (nothing)
-- facts --
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"turn-6brocyppzz5cj7s2bleq","cause":"answer","synthetic":true}
-- state phase owned turn last_turn pending prompts --
phase: "running"
owned: true
turn: {"id":"turn-6brocyppzz5cj7s2bleq","cause":"answer","synthetic":true,"of_turn":"t1","prompts":[{"prompt":"p1","status":"answered","seq":5,"asked":3},{"prompt":"p2","status":"answered","seq":6,"asked":3}],"since":"@7s","attempt":1,"epoch":2,"options":{"model":"big"}}
last_turn: {"id":"t1","outcome":"continued","at":"@7s","options":{"model":"big"},"cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":7}
pending: (nothing)
prompts: (nothing)
-- work --
(none)
-- endings --
5 prompt p1 answered delivered @5s
5 tool c1 completed
6 prompt p2 answered delivered @6s
6 tool c2 completed
7 turn t1 continued
