An answer is checked against the questions: a wrong one is refused with 422 and the prompt stays open; white space is
trimmed; an empty answer is a skipped question (P8).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","questions":[{"id":"db","question":"Which?","options":[{"label":"postgres"},{"label":"sqlite"}]},{"id":"extras","question":"What else?","options":[{"label":"redis"},{"label":"nats"}],"multi":true,"custom":true},{"id":"name","question":"Its name?"},{"id":"port","question":"Its port?","options":[{"label":"4222"}],"custom":true}]}
-- request --
answer {"prompt":"p1","answers":[{"question":"db","selected":["sqlite"]}],"by":"ada"}
-- result --
422 the answer does not fit the questions; the prompt stays open: extras: not answered: send an empty answer to skip it
  {"questions":{"extras":"not answered: send an empty answer to skip it","name":"not answered: send an empty answer to skip it","port":"not answered: send an empty answer to skip it"},"reason":"the answer does not fit the questions; the prompt stays open: extras: not answered: send an empty answer to skip it"}
-- request --
answer {"prompt":"p1","answers":[{"question":"db","selected":["sqlite","postgres"]},{"question":"extras","selected":[]},{"question":"name","selected":[]}],"by":"ada"}
-- result --
422 the answer does not fit the questions; the prompt stays open: db: several answers to a single choice
  {"questions":{"db":"several answers to a single choice","port":"not answered: send an empty answer to skip it"},"reason":"the answer does not fit the questions; the prompt stays open: db: several answers to a single choice"}
-- request --
answer {"prompt":"p1","answers":[{"question":"db","selected":["oracle"]},{"question":"extras","selected":["redis","redis"]},{"question":"name","selected":[],"text":"a"}],"by":"ada"}
-- result --
422 the answer does not fit the questions; the prompt stays open: db: "oracle" is not offered
  {"questions":{"db":"\"oracle\" is not offered","extras":"\"redis\" is selected twice","port":"not answered: send an empty answer to skip it"},"reason":"the answer does not fit the questions; the prompt stays open: db: \"oracle\" is not offered"}
-- request --
answer {"prompt":"p1","answers":[{"question":"db","selected":[],"text":"my own"},{"question":"extras","selected":[]},{"question":"name","selected":[],"text":7}],"by":"ada"}
-- result --
422 the answer does not fit the questions; the prompt stays open: db: a text of one's own is not offered
  {"questions":{"db":"a text of one's own is not offered","name":"not text: json: cannot unmarshal number into Go struct field Answer.text of type string","port":"not answered: send an empty answer to skip it"},"reason":"the answer does not fit the questions; the prompt stays open: db: a text of one's own is not offered"}
-- request --
answer {"prompt":"p1","answers":[{"question":"db","selected":[]},{"question":"db","selected":[]},{"question":"extras","selected":[]},{"question":"name","selected":[]}],"by":"ada"}
-- result --
422 the answer does not fit the questions; the prompt stays open: db: answered twice
  {"questions":{"db":"answered twice","port":"not answered: send an empty answer to skip it"},"reason":"the answer does not fit the questions; the prompt stays open: db: answered twice"}
-- request --
answer {"prompt":"p1","answers":[{"question":"db","selected":[]},{"question":"extras","selected":[]},{"question":"name","selected":[]},{"question":"colour","selected":[]},{"question":"port","selected":["4222"],"text":"4333"}],"by":"ada"}
-- result --
422 the answer does not fit the questions; the prompt stays open: colour: no such question
  {"questions":{"colour":"no such question","port":"several answers to a single choice"},"reason":"the answer does not fit the questions; the prompt stays open: colour: no such question"}
-- request --
answer {"prompt":"p1","answers":"sqlite","by":"ada"}
-- result --
422 the answer does not fit the questions; the prompt stays open: "": answers: want a list of {question, selected, text}
  {"questions":{"":"answers: want a list of {question, selected, text}","db":"not answered: send an empty answer to skip it","extras":"not answered: send an empty answer to skip it","name":"not answered: send an empty answer to skip it","port":"not answered: send an empty answer to skip it"},"reason":"the answer does not fit the questions; the prompt stays open: \"\": answers: want a list of {question, selected, text}"}
-- pending --
p1
-- request @3s --
answer {"prompt":"p1","answers":[{"question":"db","selected":[" sqlite ","  "]},{"question":"port","selected":["4333"]},{"question":"extras","selected":["nats"," own label "],"text":" and tea "},{"question":"name","selected":[],"text":"  "}],"by":"ada"}
-- result --
3 prompt.answered {"prompt":"p1","answers":[{"question":"db","selected":["sqlite"]},{"question":"port","selected":["4333"]},{"question":"extras","selected":["nats","own label"],"text":"and tea"},{"question":"name","selected":[]}],"by":"ada","owed":true}
-- blocker p1 status answers by --
status: "answered"
answers: [{"question":"db","selected":["sqlite"]},{"question":"port","selected":["4333"]},{"question":"extras","selected":["nats","own label"],"text":"and tea"},{"question":"name","selected":[]}]
by: "ada"
