The process is gone. A person answers the question of the open turn, and then dismisses a question outside of any turn
that also blocked it. The ledger requests no turn for the dismissal; recovery requests one for the answer, which
continues the open turn (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
6 by=ledger prompt.dismissed {"prompt":"p0","by":"ada"}
-- decide @60s --
7 turn.requested {"turn":"turn-shfzy35gxxwiyxqjd2da","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1","p0"]}
