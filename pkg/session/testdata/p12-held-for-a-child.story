No continuation while a call of that turn is held for a child: the answer closes its call and waits (P12, §2.1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"ask"}
2 tool.started {"call":"c2","turn":"t1","name":"task"}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result"}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"c2","child":"s2"}]}
-- request @5s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
5 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
5 tool.completed {"call":"c1","output":{"questions":[],"answers":[]},"synthetic":true}
-- state phase waits_for pending --
phase: "waiting"
waits_for: [{"call":"c2","child":"s2"}]
pending: (nothing)
-- facts --
6 by=reconciler tool.completed {"call":"c2","output":"done","synthetic":true}
-- state phase waits_for --
phase: "interrupted"
waits_for: (nothing)
-- request @7s --
continue {"ofturn":"t1"}
-- result --
7 turn.requested {"turn":"turn-gqzmtl26rj3esolinegw","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state phase pending --
phase: "queued"
pending: {"turn":{"turn":"turn-gqzmtl26rj3esolinegw","cause":"answer","of_turn":"t1","attempt":0,"prompt":"p1","prompts":[{"prompt":"p1","status":"answered","seq":5,"asked":3}],"at":"@7s","seq":7}}
