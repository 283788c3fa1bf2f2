A decision ended its call while no process had the session. The turn that brings it finds that the agent has another
one, and refuses it: people see that, and no later attempt names it. A decision that an agent has is not refused (P22).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c1","turn":"t1","name":"ask"}
3 tool.started {"call":"c2","turn":"t1","name":"ask"}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"permission","delivery":"tool-result"}
5 prompt.requested {"prompt":"p2","turn":"t1","call":"c2","kind":"permission","delivery":"tool-result"}
6 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @7s --
answer {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
answer {"prompt":"p2","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
-- result --
7 prompt.answered {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada","owed":true}
7 tool.completed {"call":"c1","output":{"questions":[{"id":"permission","question":"","options":[{"label":"once"},{"label":"always"}],"multi":false,"custom":false}],"answers":[{"question":"permission","selected":["once"]}]},"synthetic":true}
8 prompt.answered {"prompt":"p2","answers":[{"question":"permission","selected":["once"]}],"by":"ada","owed":true}
8 tool.completed {"call":"c2","output":{"questions":[{"id":"permission","question":"","options":[{"label":"once"},{"label":"always"}],"multi":false,"custom":false}],"answers":[{"question":"permission","selected":["once"]}]},"synthetic":true}
8 turn.requested {"turn":"turn-xwfnewuuw5j6zbuerd6d","cause":"answer","of_turn":"t1","prompt":"p2","prompts":["p1","p2"]}
-- facts --
9 session.claimed {"incarnation":"18"}
10 turn.started {"turn":"$requested","cause":"answer","of_turn":"t1"}
11 prompt.delivered {"prompt":"p1","refused":"it was answered elsewhere"}
-- state turn --
turn: {"id":"turn-xwfnewuuw5j6zbuerd6d","cause":"answer","synthetic":false,"of_turn":"t1","prompts":[{"prompt":"p2","status":"answered","seq":8,"asked":5}],"since":"@10s","attempt":1,"epoch":2}
-- blocker p1 status reason answers by --
status: "answered"
reason: "refused: it was answered elsewhere"
answers: [{"question":"permission","selected":["once"]}]
by: "ada"
-- facts --
12 prompt.delivered {"prompt":"p1","refused":"and again"}
13 prompt.delivered {"prompt":"p2"}
14 prompt.delivered {"prompt":"p2","refused":"too late"}
-- ignored --
12: 1, the last prompt.delivered by harness: closed-id
14: 1, the last prompt.delivered by harness: closed-id
-- blocker p2 status reason --
status: "answered"
reason: (nothing)
-- facts --
15 turn.failed {"turn":"$turn","error":{"kind":"rate_limit"}}
-- state last_turn --
last_turn: {"id":"turn-xwfnewuuw5j6zbuerd6d","outcome":"failed","reason":"rate_limit","at":"@15s","error":{"kind":"rate_limit","text":""},"prompts":[{"prompt":"p2","status":"answered","seq":8,"asked":5,"had":2}],"cause":"answer","of_turn":"t1","attempt":1,"synthetic":false,"had_output":false,"seq":15}
