A process claims a session with a call in the background whose turn has ended, and with the question of that call. It
lives, and does not ask again: it says so. The answer is owed like any other, and recovery requests one turn that brings
it. An Ask that comes before that turn begins has the answer, and the request is taken back (P12, P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","on_owner_loss":"keep","questions":[{"id":"q","question":"Which?"}]}
4 turn.completed {"turn":"t1"}
5 session.claimed {"incarnation":"18"}
5 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
5 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","on_owner_loss":"keep","questions":[{"id":"q","question":"Which?"}]}
6 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
-- owner --
alive
-- decide --
(none)
-- facts --
7 prompt.unattended {"prompt":"p1"}
-- decide --
8 turn.requested {"turn":"turn-qf24l5pc6nngiuc7xji3","cause":"answer","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=18 last=t1,completed call=c1 prompt=p1,answered requested=turn-qf24l5pc6nngiuc7xji3,answer
-- facts --
9 tool.completed {"call":"c1","output":"blue"}
-- decide --
(none)
-- state --
idle owned-by=18 last=t1,completed
