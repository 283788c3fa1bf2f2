An answer is stored, then a person stops the turn before the agent has read the answer. The person resumes: a turn
names the answer (R14).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 by=ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- request --
resume {"by":"ada"}
-- result --
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","message":"m1","prompt":"p1","prompts":["p1"]}
-- facts --
8 turn.started {"turn":"$requested","prompts":["p1"]}
9 turn.completed {"turn":"$turn"}
-- request --
resume {"by":"ada"}
-- result --
409 nothing to resume: no turn failed or was interrupted last, and no message waits behind one that was stopped
  {"status":"idle","reason":"last turn completed","at":"@9s","seq":9}
-- state --
idle owned-by=17 last=turn-shfzy35gxxwiyxqjd2da,completed
