The same labels with another text, or for another question, are another answer: the second is told the first with 409 (P9).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","title":"which?"}
-- wish --
answer {"prompt":"p1","answers":[{"question":"a","text":"one"}],"by":"ada"}
answer {"prompt":"p1","answers":[{"question":"a","text":"two"}],"by":"bob"}
answer {"prompt":"p1","answers":[{"question":"b","text":"one"}],"by":"bob"}
answer {"prompt":"p1","answers":[{"question":"a","text":" one "}],"by":"bob"}
-- reply --
answer: appended as 3
answer: nothing to append, see 3
-- refusal --
409 answered -
  prompt p1 was answered by ada already
  {"status":"answered","answers":[{"question":"a","selected":[],"text":"one"}],"by":"ada","at":@3s,"seq":3,"prompt":"p1"}
409 answered -
  prompt p1 was answered by ada already
  {"status":"answered","answers":[{"question":"a","selected":[],"text":"one"}],"by":"ada","at":@3s,"seq":3,"prompt":"p1"}
-- facts appended --
3 prompt.answered {"prompt":"p1","answers":[{"question":"a","selected":[],"text":"one"}],"by":"ada"}
