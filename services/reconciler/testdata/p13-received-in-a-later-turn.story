A question outside of any turn is answered, and the turn that brings the answer fails. The agent begins a turn of its own,
asks again in it, and Ask returns the answer. When that turn has completed, nothing is requested for the answer (P13, V15).

-- facts --
1 session.opened {"incarnation":"17","policy":{"retry_max":0}}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","questions":[{"id":"q","question":"Which?"}]}
3 prompt.unattended {"prompt":"p1"}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
-- owner --
alive
-- decide --
5 turn.requested {"turn":"turn-47gwugojrqecs2ggs23n","cause":"answer","prompt":"p1","prompts":["p1"]}
-- facts --
6 turn.started {"turn":"turn-47gwugojrqecs2ggs23n","cause":"answer","prompt":"p1","prompts":["p1"]}
7 turn.failed {"turn":"turn-47gwugojrqecs2ggs23n","error":{"kind":"rate_limit","text":"later"},"had_output":false}
8 turn.started {"turn":"t2","cause":"message","synthetic":true}
9 prompt.delivered {"prompt":"p1"}
10 turn.completed {"turn":"t2"}
-- decide --
(none)
