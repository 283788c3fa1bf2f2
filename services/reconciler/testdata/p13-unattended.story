A question outside of any turn is answered while its process lives. As long as an Ask may wait for the answer, nothing is
requested. The process says that nothing waits, and recovery requests one turn that brings the answer, when the turn that runs
has ended (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","questions":[{"id":"q","question":"Which?"}]}
3 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
-- owner --
alive
-- decide --
(none)
-- facts --
4 turn.started {"turn":"t1","cause":"message","synthetic":true}
5 prompt.unattended {"prompt":"p1"}
-- decide --
(none)
-- facts --
6 turn.completed {"turn":"t1"}
-- decide --
7 turn.requested {"turn":"turn-6esm2htnyahzgxkuevnd","cause":"answer","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=17 last=t1,completed prompt=p1,answered requested=turn-6esm2htnyahzgxkuevnd,answer
