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
6 prompt.superseded {"prompt":"superseded","message":"m1"}
-- wish --
dismiss {"prompt":"dismissed","by":"bob"}
answer {"prompt":"expired","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
answer {"prompt":"dismissed","answers":[],"by":"ada"}
answer {"prompt":"withdrawn","answers":[],"by":"ada"}
answer {"prompt":"superseded","answers":[],"by":"ada"}
reject {"prompt":"dismissed","by":"ada"}
dismiss {"prompt":"dismissed","by":"ada"}
answer {"prompt":"never","answers":[],"by":"ada"}
-- refusal --
410 expired owner-lost
  prompt expired is expired (owner-lost): it can no longer be decided
  {"status":"expired","reason":"owner-lost","at":@4s,"seq":4,"prompt":"expired"}
410 dismissed -
  prompt dismissed is dismissed (no reason given): it can no longer be decided
  {"status":"dismissed","by":"bob","at":@7s,"seq":7,"prompt":"dismissed"}
410 withdrawn shutdown
  prompt withdrawn is withdrawn (shutdown): it can no longer be decided
  {"status":"withdrawn","reason":"shutdown","at":@5s,"seq":5,"prompt":"withdrawn"}
410 superseded m1
  prompt superseded is superseded (m1): it can no longer be decided
  {"status":"superseded","reason":"m1","at":@6s,"seq":6,"prompt":"superseded"}
410 dismissed -
  prompt dismissed is dismissed (no reason given): it can no longer be decided
  {"status":"dismissed","by":"bob","at":@7s,"seq":7,"prompt":"dismissed"}
404
  no such prompt: never
  {"what":"prompt"}
-- reply --
dismiss: appended as 7
dismiss: nothing to append, see 7
-- facts appended --
7 prompt.dismissed {"prompt":"dismissed","by":"bob"}
