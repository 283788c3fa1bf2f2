A call in the background asks, and its turn ends. A person answers, and nothing waits for the answer, so recovery requests
a turn for it. Before that turn begins, the agent asks again and ends its call with the answer. The request is dropped, and
nothing else is requested (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 tool.started {"call":"c1","turn":"t1","name":"ask","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"callback","on_owner_loss":"keep","questions":[{"id":"q","question":"Which?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
5 turn.completed {"turn":"t1"}
-- owner --
alive
-- decide --
(none)
-- facts --
6 prompt.unattended {"prompt":"p1"}
-- decide --
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- facts --
8 tool.completed {"call":"c1","output":"blue"}
-- state --
idle owned-by=17 last=t1,completed
-- decide --
(none)
