A person answers, stops the turn, and sends two messages. The newer one is withdrawn. The older one is still an act of that person
after the stop: its turn is requested, and names the answer. When it begins, nothing is left of the stop (C7, C18, R15). When the
older one is withdrawn too, the stop still holds for the answer.

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
5 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- state held_seq stopped_seq --
held_seq: 5
stopped_seq: 5
-- request --
send {"message":"m2","content":"first","by":"ada"}
send {"message":"m3","content":"second","by":"ada"}
withdraw {"message":"m3","by":"ada"}
-- result --
7 message.accepted {"message":"m2","content":"first","synthetic":false,"by":"ada"}
7 turn.requested {"turn":"turn-6co7onw2nxkbr5zyvwa5","cause":"message","message":"m2","prompt":"p1","prompts":["p1"]}
8 message.accepted {"message":"m3","content":"second","synthetic":false,"by":"ada"}
9 message.withdrawn {"message":"m3","by":"ada"}
-- decide --
(none)
-- state --
queued owned-by=17 last=t1,stopped prompt=p1,answered queued=m2 requested=turn-6co7onw2nxkbr5zyvwa5,message,message=m2
-- state held_seq stopped_seq --
held_seq: 5
stopped_seq: 5
-- request --
withdraw {"message":"m2","by":"ada"}
-- result --
10 message.withdrawn {"message":"m2","by":"ada"}
-- decide --
(none)
-- state --
idle owned-by=17 last=t1,stopped prompt=p1,answered
-- state held_seq stopped_seq --
held_seq: 5
stopped_seq: 5
-- request --
send {"message":"m4","content":"first","by":"ada"}
send {"message":"m5","content":"second","by":"ada"}
withdraw {"message":"m5","by":"ada"}
-- result --
11 message.accepted {"message":"m4","content":"first","synthetic":false,"by":"ada"}
11 turn.requested {"turn":"turn-ijohvvjetcflqpoydl5h","cause":"message","message":"m4","prompt":"p1","prompts":["p1"]}
12 message.accepted {"message":"m5","content":"second","synthetic":false,"by":"ada"}
13 message.withdrawn {"message":"m5","by":"ada"}
-- facts --
14 turn.started {"turn":"$requested","cause":"message","prompts":["p1"]}
-- state turn --
turn: {"id":"turn-ijohvvjetcflqpoydl5h","cause":"message","synthetic":false,"message":"m4","message_seq":11,"prompts":[{"prompt":"p1","status":"answered","seq":4,"asked":3}],"since":"@14s","attempt":1,"epoch":1}
-- state held_seq stopped_seq --
held_seq: (nothing)
stopped_seq: (nothing)
