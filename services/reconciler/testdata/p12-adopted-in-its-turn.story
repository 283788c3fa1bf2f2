A process adopts an open turn with a call in the background and its question, and says that no Ask waits for that
question. The turn is the process's own: an answer takes nothing from it, and reaches the agent after the turn, if the
turn has not read it (P12, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 session.claimed {"incarnation":"18"}
4 turn.started {"turn":"t1","cause":"message","synthetic":true}
4 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
4 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
5 prompt.unattended {"prompt":"p1"}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
-- owner --
alive
-- decide --
(none)
-- state --
running owned-by=18 turn=t1,message call=c1 prompt=p1,answered
-- facts --
7 turn.completed {"turn":"t1"}
-- decide --
8 turn.requested {"turn":"turn-cvdrsiyaxxmztzqku525","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=18 last=t1,completed call=c1 prompt=p1,answered requested=turn-cvdrsiyaxxmztzqku525,answer,of=t1
