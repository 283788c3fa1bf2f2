A call in the background asks. A person stops the turn that was requested for the decision. The agent begins a turn by
itself that names the decision, and its process leaves. Recovery ends the call with the decision, and that does not
continue the turn: the decision is from before the stop. With resume hold the turn waits for a person (P13, P16).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
2 tool.started {"call":"c1","turn":"t1","name":"ask","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","on_owner_loss":"keep","blocking":false}
4 prompt.unattended {"prompt":"p1"}
5 turn.completed {"turn":"t1"}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
-- owner --
alive
-- decide @10s --
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- facts --
11 by=ledger turn.stop_requested {"turn":"$requested","actor":"person","by":"ada"}
12 turn.stopped {"turn":"turn-shfzy35gxxwiyxqjd2da","actor":"person"}
13 turn.started {"turn":"t2","cause":"message","synthetic":true,"prompts":["p1"]}
14 session.released {"reason":"shutdown"}
-- decide @20s --
15 tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
15 turn.interrupted {"turn":"t2","reason":"shutdown"}
-- state --
interrupted last=t2,interrupted,shutdown
-- decide @30s --
(none)
