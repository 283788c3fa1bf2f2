A person answers a question outside of any turn, and its process dies in a turn. The turn is interrupted. Its resume names the
answer, so no other turn is requested for it (P13, R13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
3 turn.started {"turn":"t1","cause":"message","message":"m1"}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
-- owner --
dead
-- decide --
5 session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
interrupted last=t1,interrupted,owner-lost prompt=p1,answered
