The same labels with another text, or for another question, are another answer: the second person gets the first answer
with 409 (P9).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","title":"which?"}
-- request @3s --
answer {"prompt":"p1","answers":[{"question":"a","text":"one"}],"by":"ada"}
-- result --
3 prompt.answered {"prompt":"p1","answers":[{"question":"a","selected":[],"text":"one"}],"by":"ada","owed":true}
-- request --
answer {"prompt":"p1","answers":[{"question":"a","text":"two"}],"by":"bob"}
-- result --
409 prompt p1 was answered by ada already
  {"status":"answered","answers":[{"question":"a","selected":[],"text":"one"}],"by":"ada","at":"@3s","seq":3,"prompt":"p1"}
-- request --
answer {"prompt":"p1","answers":[{"question":"b","text":"one"}],"by":"bob"}
-- result --
409 prompt p1 was answered by ada already
  {"status":"answered","answers":[{"question":"a","selected":[],"text":"one"}],"by":"ada","at":"@3s","seq":3,"prompt":"p1"}
-- request --
answer {"prompt":"p1","answers":[{"question":"a","text":" one "}],"by":"bob"}
-- result --
nothing to append, see 3
