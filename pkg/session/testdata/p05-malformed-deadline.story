A deadline that is no instant is parked with the reason and counted; the prompt stands with its questions, and without a deadline (P5).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"tool-result","title":"Which?","deadline":"soon","questions":[{"id":"db","question":"Which one?","options":[{"label":"postgres"},{"label":"sqlite"}]}]}
-- parked --
2[0] malformed: deadline: malformed: want an RFC 3339 instant: parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"
-- state phase parked --
phase: "waiting"
parked: 1
-- blocker p1 kind title questions status deadline --
kind: "question"
title: "Which?"
questions: [{"id":"db","question":"Which one?","options":[{"label":"postgres"},{"label":"sqlite"}],"multi":false,"custom":false}]
status: "awaiting"
deadline: (nothing)
-- request --
answer {"prompt":"p1","answers":[{"question":"db","selected":["mysql"]}],"by":"ada"}
-- result --
422 the answer does not fit the questions; the prompt stays open: db: "mysql" is not offered
  {"questions":{"db":"\"mysql\" is not offered"},"reason":"the answer does not fit the questions; the prompt stays open: db: \"mysql\" is not offered"}
-- request @3s --
answer {"prompt":"p1","answers":[{"question":"db","selected":["sqlite"]}],"by":"ada"}
-- result --
3 prompt.answered {"prompt":"p1","answers":[{"question":"db","selected":["sqlite"]}],"by":"ada","owed":true}
