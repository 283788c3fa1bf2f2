The fold does not check the guard of a commit, only its order; it reports a gap (§2.4).

-- facts --
5 @1s session.opened {"incarnation":"17"}
9 @2s guard=7 turn.started {"turn":"t1","cause":"message"}
10 @3s unguarded turn.completed {"turn":"t1"}
11 @4s guard=3 turn.started {"turn":"t2","cause":"message"}
again 9
-- parked --
9: gap, its writer had seen 7
-- state phase seq commits turn --
phase: "running"
seq: 11
commits: 4
turn: {"id":"t2","cause":"message","synthetic":false,"since":"@4s","attempt":1,"epoch":1}
