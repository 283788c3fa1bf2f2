A person stops the session, and answers a question whose asker is gone: a turn is requested for the answer. The process
that claims the session begins a turn of its own in its place. The person has continued the session with the answer,
which stays owed (R15, P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 turn.started {"turn":"t1","cause":"message","synthetic":true}
-- request --
stop {"by":"ada","force":true}
-- result --
4 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- facts --
5 turn.stopped {"turn":"t1","actor":"person"}
6 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 by=ledger as=ada prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
7 by=ledger as=ada turn.requested {"turn":"t2","cause":"answer","prompt":"p1","prompts":["p1"]}
8 session.claimed {"incarnation":"18"}
9 turn.started {"turn":"own","cause":"message","synthetic":true}
-- state stopped_seq --
stopped_seq: (nothing)
-- state --
running owned-by=18 turn=own,message last=t1,stopped prompt=p1,answered
