A person stops a turn whose question, in a call in the background, has a deadline. The process is gone, and the question
expires after the stop: its call ends, and no turn begins. The person resumes by a message (R15, P20).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 tool.started {"call":"c1","turn":"t1","name":"ask","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","on_owner_loss":"keep","blocking":false,"deadline":"@90s"}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- owner --
dead
-- decide @60s --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 turn.stopped {"turn":"t1","actor":"person"}
look @90s
-- decide @91s --
6 prompt.expired {"prompt":"p1","reason":"deadline"}
6 tool.failed {"call":"c1","error":{"kind":"expired","text":"deadline"},"synthetic":true}
-- state --
idle last=t1,stopped
