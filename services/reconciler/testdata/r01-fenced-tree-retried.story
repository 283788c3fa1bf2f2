A whole tree was fenced, its child was interrupted, and its reconciler died then. Meanwhile retry has scheduled the
child. The parent does not wait for that: sessions that were fenced together are interrupted together, in every order of
the services (R1, R3).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
-- facts child --
4 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
5 turn.started {"turn":"k1","cause":"message","synthetic":true}
-- facts --
6 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"child"}]}
-- facts child --
7 session.orphaned {"reason":"owner-lost","incarnation":"17"}
8 turn.interrupted {"turn":"k1","reason":"owner-lost"}
9 retry.scheduled {"turn":"k1","attempt":1,"delay_ms":2000,"due_at":"@11s","error":{"kind":"interrupted","text":"owner-lost"}}
-- decide --
s 10 tool.interrupted {"call":"task1","reason":"owner-lost","outcome":"unknown"}
s 10 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state --
s interrupted last=t1,interrupted,owner-lost
child retrying last=k1,interrupted,owner-lost retry=scheduled,attempt=1,same=0,resumes=0,due=@11s
