An answer to an expired, dismissed, withdrawn or superseded prompt is 410 with status and reason, and changes nothing (P11).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"expired","turn":"t1","kind":"permission","delivery":"callback"}
3 prompt.requested {"prompt":"dismissed","turn":"t1","kind":"question","delivery":"callback"}
3 prompt.requested {"prompt":"withdrawn","turn":"t1","kind":"question","delivery":"callback"}
3 prompt.requested {"prompt":"superseded","turn":"t1","kind":"question","delivery":"tool-result"}
4 by=reconciler prompt.expired {"prompt":"expired","reason":"owner-lost"}
5 prompt.withdrawn {"prompt":"withdrawn","reason":"shutdown"}
6 by=harness prompt.superseded {"prompt":"superseded","message":"m1"}
-- request @7s --
dismiss {"prompt":"dismissed","by":"bob"}
-- result --
7 prompt.dismissed {"prompt":"dismissed","by":"bob"}
-- request --
answer {"prompt":"expired","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
-- result --
410 prompt expired is expired (owner-lost): it can no longer be decided
  {"status":"expired","reason":"owner-lost","at":"@4s","seq":4,"prompt":"expired"}
-- request --
answer {"prompt":"dismissed","answers":[],"by":"ada"}
-- result --
410 prompt dismissed is dismissed (no reason given): it can no longer be decided
  {"status":"dismissed","by":"bob","at":"@7s","seq":7,"prompt":"dismissed"}
-- request --
answer {"prompt":"withdrawn","answers":[],"by":"ada"}
-- result --
410 prompt withdrawn is withdrawn (shutdown): it can no longer be decided
  {"status":"withdrawn","reason":"shutdown","at":"@5s","seq":5,"prompt":"withdrawn"}
-- request --
answer {"prompt":"superseded","answers":[],"by":"ada"}
-- result --
410 prompt superseded is superseded (m1): it can no longer be decided
  {"status":"superseded","reason":"m1","at":"@6s","seq":6,"prompt":"superseded"}
-- request --
reject {"prompt":"dismissed","by":"ada"}
-- result --
410 prompt dismissed is dismissed (no reason given): it can no longer be decided
  {"status":"dismissed","by":"bob","at":"@7s","seq":7,"prompt":"dismissed"}
-- request --
dismiss {"prompt":"dismissed","by":"ada"}
-- result --
nothing to append, see 7
-- request --
answer {"prompt":"never","answers":[],"by":"ada"}
-- result --
404 no such prompt: never
  {"what":"prompt"}
