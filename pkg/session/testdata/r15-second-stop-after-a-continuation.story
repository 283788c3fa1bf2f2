The process of a stopped turn is gone, and another person answers the turn's question: a turn is requested for the
answer. The first person stops again, and the requested turn is taken back (R15, P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result","on_owner_loss":"keep"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @5s --
stop {"by":"ada","force":true}
-- result --
5 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- request @6s --
answer {"prompt":"p1","answers":[],"by":"ben"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[],"by":"ben","owed":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- request @7s --
stop {"by":"ada"}
stop {"by":"ada"}
-- result --
7 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
nothing to append, see 7
-- state --
interrupted turn=t1,message prompt=p1,answered stop=t1,person
