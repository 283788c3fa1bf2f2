Malformed questions are parked with the reason and counted, and the prompt stands as a generic blocker with its raw title, because the agent is waiting (P5).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"tool-result","title":"No list","questions":"Which one?"}
3 prompt.requested {"prompt":"p2","kind":"question","delivery":"tool-result","title":"No id","questions":[{"question":"Which one?"}]}
4 prompt.requested {"prompt":"p3","kind":"question","delivery":"tool-result","title":"No text","questions":[{"id":"q"}]}
5 prompt.requested {"prompt":"p4","kind":"hologram","delivery":"tool-result","title":{"odd":["title"]}}
-- parked --
2[0] malformed: questions: malformed: want a list of questions: json: cannot unmarshal string into Go value of type []events.Question
3[0] malformed: questions: malformed: question 0 has no id
4[0] malformed: questions: malformed: question "q" has no text
-- state phase parked --
phase: "waiting"
parked: 3
-- pending --
p1
p2
p3
p4
-- blocker p1 kind title questions status blocking --
kind: "question"
title: "No list"
questions: (nothing)
status: "awaiting"
blocking: true
-- blocker p4 kind title questions status blocking --
kind: "hologram"
title: "{\"odd\":[\"title\"]}"
questions: (nothing)
status: "awaiting"
blocking: true
-- request @6s --
answer {"prompt":"p1","answers":[{"question":"free","selected":[],"text":"the left one"}],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[{"question":"free","selected":[],"text":"the left one"}],"by":"ada","owed":true}
-- blocker p1 status answers by --
status: "answered"
answers: [{"question":"free","selected":[],"text":"the left one"}]
by: "ada"
