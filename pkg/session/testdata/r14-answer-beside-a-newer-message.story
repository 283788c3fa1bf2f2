With resume hold, a person's message after a crash goes before the interrupted turn (R15). An answer in the moment
before the message has its turn does not continue the interrupted turn (R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
5 session.claimed {"incarnation":"18"}
6 message.accepted {"message":"m2","content":"x","synthetic":false,"by":"bob"}
-- request --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
-- result --
7 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada","owed":true}
7 turn.requested {"turn":"turn-6esm2htnyahzgxkuevnd","cause":"answer","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=18 last=t1,interrupted,owner-lost prompt=p1,answered queued=m2 requested=turn-6esm2htnyahzgxkuevnd,answer
