A person stops a turn, and its process dies. With resume hold, an answer from after the stop does not continue the
stopped turn (R14, R15).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- request --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada","owed":true}
6 turn.requested {"turn":"turn-jt2hemddtogynv6ejkjr","cause":"answer","prompt":"p1","prompts":["p1"]}
-- state --
queued last=t1,interrupted,owner-lost prompt=p1,answered requested=turn-jt2hemddtogynv6ejkjr,answer
