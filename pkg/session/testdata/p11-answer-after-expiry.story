An answer that arrives after the prompt expired, was dismissed or was withdrawn is told so and changes nothing (P11).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback","title":"rm -rf build"}
4 by=reconciler prompt.expired {"prompt":"p1","reason":"owner-lost"}
-- wish --
answer {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
-- refusal --
410 expired owner-lost
  prompt p1 is expired (owner-lost): it can no longer be decided
  {"status":"expired","reason":"owner-lost","at":@4s,"seq":4,"prompt":"p1"}
-- facts appended --
(none)
-- state phase prompts --
phase: "running"
prompts: (nothing)
-- endings --
4 prompt p1 expired (owner-lost)
