A person stops the session, and answers a question whose asker is gone. The answer waits as a message, and a turn is
requested for it. The agent begins a turn of its own in its place. The person can still take the answer back, so the
stop holds decisions from before it (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"message","questions":[{"id":"q1","question":"Which?","custom":true}]}
-- request --
stop {"by":"ada","force":true}
-- result --
4 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- facts --
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
6 by=ledger as=ada prompt.answered {"prompt":"p1","answers":[{"question":"q1","selected":[],"text":"this"}],"by":"ada","owed":true}
6 by=ledger as=ada message.accepted {"message":"answer-2txg23qa7p5dtcpu2fa4","content":"this","synthetic":true}
6 by=ledger as=ada turn.requested {"turn":"t2","cause":"answer","of_turn":"t1","message":"answer-2txg23qa7p5dtcpu2fa4","prompt":"p1","prompts":["p1"]}
-- facts --
7 session.claimed {"incarnation":"18"}
8 turn.started {"turn":"own","cause":"message","synthetic":true}
-- state --
running owned-by=18 turn=own,message last=t1,stopped,replaced prompt=p1,answered queued=answer-2txg23qa7p5dtcpu2fa4 stop=own,person
-- state stopped_seq held_seq queue --
stopped_seq: 4
held_seq: (nothing)
queue: [{"message":"answer-2txg23qa7p5dtcpu2fa4","seq":6,"synthetic":true,"at":"@6s"}]
