A sub-agent was interrupted once, was adopted by the next process together with its parent, and had not begun its
requested turn when that process died, too. Its parent waits for it: the interruption is of an older turn (P16, R13).

-- facts --
1 session.opened {"incarnation":"16"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
-- facts child --
4 session.opened {"incarnation":"16","parent":"s","parent_call":"task1","root":"s"}
5 turn.started {"turn":"k1","cause":"message","synthetic":true}
6 session.orphaned {"reason":"owner-lost","incarnation":"16"}
7 turn.interrupted {"turn":"k1","reason":"owner-lost"}
8 session.claimed {"incarnation":"17"}
9 by=compaction message.accepted {"message":"m2","content":"x","synthetic":true}
9 by=compaction turn.requested {"turn":"k2","cause":"message","message":"m2"}
-- facts --
12 session.claimed {"incarnation":"17"}
13 tool.started {"call":"task1","turn":"t1","name":"task"}
14 turn.started {"turn":"t1","cause":"message"}
-- owner --
dead
-- owner child --
dead
-- decide @60s --
child 15 session.orphaned {"reason":"owner-lost","incarnation":"17"}
s 16 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"child"}]}
-- state --
s waiting turn=t1,message call=task1 waits-for=task1,child
child queued last=k1,interrupted,owner-lost queued=m2 requested=k2,message,message=m2
