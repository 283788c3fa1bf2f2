A question of a turn, without a call, whose answer becomes a message, is answered after its process died, while a call
of the turn waits for a child. When the child ends, the turn that continues takes the message. The answer reaches the
agent once (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
2 tool.started {"call":"c2","turn":"t1","name":"task"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message","on_owner_loss":"keep"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"c2","child":"k"}]}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 by=ledger message.accepted {"message":"answer-2txg23qa7p5dtcpu2fa4","content":"x","synthetic":true}
-- facts k --
6 session.opened {"incarnation":"17","parent":"s","root":"s","parent_call":"c2"}
7 turn.started {"turn":"k1","cause":"message","synthetic":true}
-- decide @50s --
(none)
-- state --
s waiting turn=t1,message call=c2 prompt=p1,answered waits-for=c2,k queued=answer-2txg23qa7p5dtcpu2fa4
k running owned-by=17 turn=k1,message
-- facts k --
51 turn.completed {"turn":"k1"}
52 session.released {}
-- decide @60s --
s 53 tool.completed {"call":"c2","output":{"child":"k","outcome":"completed","turn":"k1"},"synthetic":true}
s 53 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","message":"answer-2txg23qa7p5dtcpu2fa4","prompt":"p1","prompts":["p1"]}
-- state --
s queued turn=t1,message prompt=p1,answered queued=answer-2txg23qa7p5dtcpu2fa4 requested=turn-z3ao44pwarq65qsh3etl,answer,of=t1,message=answer-2txg23qa7p5dtcpu2fa4
k idle last=k1,completed
-- work turn --
turn: {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","message":"answer-2txg23qa7p5dtcpu2fa4","content":"x","synthetic":true,"attempt":1,"prompt":"p1","prompts":[{"prompt":"p1","seq":5,"status":"answered","by":"ada"}]}
-- state prompts queue --
prompts: {"p1":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@5s","status":"answered","epoch":1,"blocking":true,"seq":3,"settled_seq":5,"on_owner_loss":"keep","delivery":"message","deadline":null}}
queue: [{"message":"answer-2txg23qa7p5dtcpu2fa4","seq":5,"synthetic":true,"at":"@5s"}]
-- facts --
70 session.claimed {"incarnation":"18"}
70 turn.started {"turn":"$requested"}
-- owner --
alive
-- state turn --
turn: {"id":"turn-z3ao44pwarq65qsh3etl","cause":"answer","synthetic":true,"of_turn":"t1","message":"answer-2txg23qa7p5dtcpu2fa4","message_seq":5,"prompts":[{"prompt":"p1","status":"answered","seq":5,"asked":3}],"since":"@70s","attempt":1,"epoch":2}
-- facts --
71 turn.completed {"turn":"$turn"}
-- decide @80s --
(none)
-- state --
s idle owned-by=18 last=turn-z3ao44pwarq65qsh3etl,completed
k idle last=k1,completed
-- state queue prompts --
queue: (nothing)
prompts: (nothing)
