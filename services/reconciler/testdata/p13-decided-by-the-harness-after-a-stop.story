A person stops a turn, and its process answers the open prompt by policy before it stops. That is no act of a person: the stop holds
(P13, R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
5 prompt.rejected {"prompt":"p1","text":"stopping","by":"policy"}
6 turn.stopped {"turn":"t1","actor":"person"}
-- owner --
alive
-- decide --
(none)
-- owner --
dead
-- decide @100s --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
