Two people answer: one succeeds, the other gets the winner's answer with 409; the same answer again is a success, and
there is one fact (P9).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"permission","delivery":"callback","title":"rm -rf build"}
-- request @3s --
answer {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
-- result --
3 prompt.answered {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada","owed":true}
-- request --
answer {"prompt":"p1","answers":[{"question":"permission","selected":["always"]}],"by":"bob"}
-- result --
409 prompt p1 was answered by ada already
  {"status":"answered","answers":[{"question":"permission","selected":["once"]}],"by":"ada","at":"@3s","seq":3,"prompt":"p1"}
-- request --
answer {"prompt":"p1","answers":[{"question":"permission","selected":[" once "]}],"by":"ada"}
-- result --
nothing to append, see 3
-- request --
answer {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"bob"}
-- result --
nothing to append, see 3
-- request --
reject {"prompt":"p1","by":"bob"}
-- result --
409 prompt p1 was answered by ada already
  {"status":"answered","answers":[{"question":"permission","selected":["once"]}],"by":"ada","at":"@3s","seq":3,"prompt":"p1"}
-- request --
dismiss {"prompt":"p1","by":"bob"}
-- result --
409 prompt p1 was answered by ada already
  {"status":"answered","answers":[{"question":"permission","selected":["once"]}],"by":"ada","at":"@3s","seq":3,"prompt":"p1"}
