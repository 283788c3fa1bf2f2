Two people answer: one succeeds, the other is told the winner's answer with 409; the same answer again is a success, and there is one fact (P9).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"permission","delivery":"callback","title":"rm -rf build"}
-- wish --
answer {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
answer {"prompt":"p1","answers":[{"question":"permission","selected":["always"]}],"by":"bob"}
answer {"prompt":"p1","answers":[{"question":"permission","selected":[" once "]}],"by":"ada"}
answer {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"bob"}
reject {"prompt":"p1","by":"bob"}
dismiss {"prompt":"p1","by":"bob"}
-- reply --
answer: appended as 3
answer: nothing to append, see 3
answer: nothing to append, see 3
-- refusal --
409 answered -
  prompt p1 was answered by ada already
  {"status":"answered","answers":[{"question":"permission","selected":["once"]}],"by":"ada","at":@3s,"seq":3,"prompt":"p1"}
409 answered -
  prompt p1 was answered by ada already
  {"status":"answered","answers":[{"question":"permission","selected":["once"]}],"by":"ada","at":@3s,"seq":3,"prompt":"p1"}
409 answered -
  prompt p1 was answered by ada already
  {"status":"answered","answers":[{"question":"permission","selected":["once"]}],"by":"ada","at":@3s,"seq":3,"prompt":"p1"}
-- facts appended --
3 prompt.answered {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
