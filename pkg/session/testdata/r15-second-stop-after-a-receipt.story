A person stops a turn, another person answers its question, and the agent receives the answer before it reads the stop.
A second stop is stored: without it a turn begins for the answer, because the stopped turn does not complete (R15, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result"}
-- request @4s --
stop {"by":"ada","force":true}
-- result --
4 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- request @5s --
answer {"prompt":"p1","answers":[],"by":"ben"}
-- result --
5 prompt.answered {"prompt":"p1","answers":[],"by":"ben","owed":true}
-- facts --
6 prompt.delivered {"prompt":"p1"}
-- request @7s --
stop {"by":"ada"}
stop {"by":"ada"}
-- result --
7 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
nothing to append, see 7
-- facts --
8 turn.stopped {"turn":"t1","actor":"person"}
-- state stopped_seq last_turn --
stopped_seq: 7
last_turn: {"id":"t1","outcome":"stopped","at":"@8s","prompts":[{"prompt":"p1","status":"answered","seq":5,"asked":3,"had":1}],"cause":"message","attempt":1,"synthetic":true,"had_output":false,"actor":"person","seq":8}
