A process has the answer of its turn. It loses its lease, claims the session for its next incarnation, continues the turn, and repeats
the receipt. Then it starts a turn by itself in place of that turn. It has the answer: no turn is requested for it (P13, V15). A
process that does not repeat the receipt may have begun without a memory: a turn is requested.

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
5 prompt.delivered {"prompt":"p1"}
6 late prompt.delivered {"prompt":"p1"}
7 session.claimed {"incarnation":"18"}
7 turn.started {"turn":"t1","cause":"message"}
7 prompt.delivered {"prompt":"p1"}
-- state turn --
turn: {"id":"t1","cause":"message","synthetic":false,"message":"m1","prompts":[{"prompt":"p1","status":"answered","seq":4,"asked":3,"had":2}],"since":"@2s","attempt":1,"epoch":2}
-- facts --
8 turn.started {"turn":"own","cause":"message","synthetic":true}
9 turn.completed {"turn":"own"}
-- owner --
alive
-- decide --
(none)
-- facts --
10 turn.started {"turn":"t2","cause":"message","message":"m2"}
11 prompt.requested {"prompt":"p2","turn":"t2","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"How many?"}]}
12 by=ledger prompt.answered {"owed":true,"prompt":"p2","answers":[{"question":"q","selected":[],"text":"two"}],"by":"ada"}
13 prompt.delivered {"prompt":"p2"}
14 session.claimed {"incarnation":"19"}
14 turn.started {"turn":"t2","cause":"message"}
15 late prompt.delivered {"prompt":"p2","refused":"unknown request"}
16 turn.started {"turn":"own2","cause":"message","synthetic":true}
17 turn.completed {"turn":"own2"}
-- decide --
18 turn.requested {"turn":"turn-ik3ljv5mpsmijbicvhsz","cause":"answer","prompt":"p2","prompts":["p2"]}
