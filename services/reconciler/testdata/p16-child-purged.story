The child that a call was held for is not there any more: the call's outcome stays unknown, and the turn goes on (P16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
4 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"gone"}]}
-- at --
60
-- decide --
s tool.interrupted {"call":"task1","reason":"owner-lost","outcome":"unknown"}
s turn.requested {"turn":"turn-zrwj4oenylf4lvolizb4","cause":"resume","of_turn":"t1"}
-- state --
s retrying turn=t1 pending=resume retry=starting
