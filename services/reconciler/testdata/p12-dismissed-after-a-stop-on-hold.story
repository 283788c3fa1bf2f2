A person stopped a turn and dismisses a question of the next one, whose process died: nothing continues (P12).

-- facts --
1 session.opened {"incarnation":"17","policy":{"resume":"hold"}}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
4 turn.stopped {"turn":"t1","actor":"person"}
5 turn.started {"turn":"t2","cause":"message"}
6 tool.started {"call":"c1","turn":"t2","name":"ask"}
7 prompt.requested {"prompt":"p1","turn":"t2","call":"c1","kind":"question","delivery":"tool-result"}
8 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
9 by=ledger prompt.dismissed {"prompt":"p1","by":"ada"}
9 by=ledger tool.failed {"call":"c1","error":{"kind":"dismissed","text":"x"},"synthetic":true}
-- decide @50s --
10 turn.interrupted {"turn":"t2","reason":"owner-lost"}
-- state --
interrupted last=t2,interrupted,owner-lost
-- state stopped_seq held_seq turn --
stopped_seq: 3
held_seq: 10
turn: (nothing)
