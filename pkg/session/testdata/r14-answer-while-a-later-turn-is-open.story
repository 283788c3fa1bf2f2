With resume hold, an agent begins a turn by itself after an interrupted one, asks in that turn and dies. The answer
continues the open turn that asked, not the interrupted one (P13, R14).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
4 session.claimed {"incarnation":"18"}
5 turn.started {"turn":"t2","cause":"message","synthetic":true}
6 prompt.requested {"prompt":"p1","turn":"t2","kind":"question","delivery":"callback","on_owner_loss":"keep","questions":[{"id":"q","question":"Which?"}]}
7 session.orphaned {"reason":"owner-lost","incarnation":"18"}
-- request --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
-- result --
8 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada","owed":true}
8 turn.requested {"turn":"turn-jhicnk3rdgs3mfq4sjce","cause":"answer","of_turn":"t2","prompt":"p1","prompts":["p1"]}
-- state --
queued turn=t2,message last=t1,interrupted,owner-lost prompt=p1,answered requested=turn-jhicnk3rdgs3mfq4sjce,answer,of=t2
