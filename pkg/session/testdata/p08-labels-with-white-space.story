A label that was offered with white space around it can be chosen all the same (P8).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","questions":[{"id":"db","question":"Which?","options":[{"label":" postgres\n"},{"label":"sqlite"}]}]}
-- request @3s --
answer {"prompt":"p1","answers":[{"question":"db","selected":[" postgres\n"]}],"by":"ada"}
-- result --
3 prompt.answered {"prompt":"p1","answers":[{"question":"db","selected":["postgres"]}],"by":"ada","owed":true}
