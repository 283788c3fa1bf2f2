A decision about a call in the background waits, and a person's message requests the turn that names it. The process ends
the call with the decision before it takes that turn. The turn does not name the decision, and the decision requests no
turn when the agent replaces that turn by its own (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 tool.started {"call":"c1","turn":"t1","name":"ask","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 prompt.unattended {"prompt":"p1"}
-- request @12s --
reject {"prompt":"p1","text":"no","by":"ada"}
-- result --
5 prompt.rejected {"prompt":"p1","text":"no","by":"ada","owed":true}
-- facts --
13 turn.completed {"turn":"t1"}
14 by=compaction message.accepted {"message":"m1","content":"next"}
14 by=compaction turn.requested {"turn":"r1","cause":"message","message":"m1","prompt":"p1","prompts":["p1"]}
-- work turn --
turn: {"turn":"r1","cause":"message","message":"m1","content":"next","attempt":1,"prompt":"p1","prompts":[{"prompt":"p1","seq":5,"status":"rejected","text":"no","by":"ada"}]}
-- facts --
15 tool.completed {"call":"c1","output":"no"}
-- state pending --
pending: {"turn":{"turn":"r1","cause":"message","message":"m1","message_seq":14,"attempt":0,"prompt":"p1","at":"@14s","seq":14}}
-- work turn --
turn: {"turn":"r1","cause":"message","message":"m1","content":"next","attempt":1}
-- facts --
16 turn.started {"turn":"r1"}
-- state turn --
turn: {"id":"r1","cause":"message","synthetic":false,"message":"m1","message_seq":14,"since":"@16s","attempt":1,"epoch":1}
-- facts --
17 turn.started {"turn":"t2","cause":"message","synthetic":true}
18 turn.completed {"turn":"t2"}
-- state prompts last_turn --
prompts: (nothing)
last_turn: {"id":"t2","outcome":"completed","at":"@18s","cause":"message","attempt":1,"synthetic":true,"had_output":false,"seq":18}
