A decision names the place of the log where its question was shown. It is refused if the prompt asks for something else
since, and counts if the prompt was only asked again. Without a place it counts for whichever question is open (P3).

-- facts --
1 session.opened {"incarnation":"17"}
2 tool.started {"call":"c1","name":"bash"}
2 tool.started {"call":"c2","name":"bash"}
3 prompt.requested {"prompt":"again","kind":"permission","delivery":"callback","title":"ls"}
4 prompt.requested {"prompt":"again","kind":"permission","delivery":"callback","title":"ls","blocking":false}
5 prompt.requested {"prompt":"other","kind":"permission","delivery":"callback","title":"ls"}
6 prompt.requested {"prompt":"other","kind":"permission","delivery":"callback","title":"rm -rf /srv"}
7 prompt.requested {"prompt":"call","call":"c1","kind":"permission","delivery":"callback","title":"Allow it?"}
8 prompt.requested {"prompt":"call","call":"c2","kind":"permission","delivery":"callback","title":"Allow it?"}
9 prompt.requested {"prompt":"call","kind":"permission","delivery":"callback","title":"Allow it?"}
10 prompt.requested {"prompt":"kind","kind":"question","delivery":"callback","title":"Do it?"}
11 prompt.requested {"prompt":"kind","kind":"plan","delivery":"callback","title":"Do it?"}
12 prompt.requested {"prompt":"options","kind":"question","delivery":"callback","title":"Where?","questions":[{"id":"q","question":"Where?","options":[{"label":"staging"}]}]}
13 prompt.requested {"prompt":"options","kind":"question","delivery":"callback","title":"Where?","questions":[{"id":"q","question":"Where?","options":[{"label":"staging","description":"the customers see it"}]}]}
14 prompt.requested {"prompt":"bare","kind":"","delivery":"callback"}
15 prompt.requested {"prompt":"bare","kind":"","delivery":"callback"}
-- facts s2 --
16 session.opened {"incarnation":"17"}
17 prompt.requested {"prompt":"other","kind":"permission","delivery":"callback","title":"rm -rf /srv"}
-- facts --
18 prompt.requested {"prompt":"other","kind":"permission","delivery":"callback","title":"rm -rf /srv"}
19 prompt.requested {"prompt":"title","kind":"plan","delivery":"callback","title":"Plan A","questions":[{"id":"q","question":"Follow it?","options":[{"label":"yes"}]}]}
20 prompt.requested {"prompt":"title","kind":"plan","delivery":"callback","title":"Plan B","questions":[{"id":"q","question":"Follow it?","options":[{"label":"yes"}]}]}
-- request --
answer {"prompt":"again","answers":[{"question":"permission","selected":["once"]}],"by":"ada","asked":3}
answer {"prompt":"other","answers":[{"question":"permission","selected":["once"]}],"by":"ada","asked":5}
reject {"prompt":"other","by":"ada","asked":5}
dismiss {"prompt":"other","by":"ada","asked":5}
answer {"prompt":"call","answers":[{"question":"permission","selected":["once"]}],"by":"ada","asked":7}
dismiss {"prompt":"kind","by":"ada","asked":10}
answer {"prompt":"options","answers":[{"question":"q","selected":["staging"]}],"by":"ada","asked":12}
answer {"prompt":"title","answers":[{"question":"q","selected":["yes"]}],"by":"ada","asked":19}
-- result --
s 21 prompt.answered {"prompt":"again","answers":[{"question":"permission","selected":["once"]}],"by":"ada","owed":true}
409 prompt other has changed since it was shown (at place 5 of the log, now at 18): read it again
  {"status":"awaiting","at":"@18s","seq":18,"prompt":"other"}
409 prompt other has changed since it was shown (at place 5 of the log, now at 18): read it again
  {"status":"awaiting","at":"@18s","seq":18,"prompt":"other"}
409 prompt other has changed since it was shown (at place 5 of the log, now at 18): read it again
  {"status":"awaiting","at":"@18s","seq":18,"prompt":"other"}
409 prompt call has changed since it was shown (at place 7 of the log, now at 9): read it again
  {"status":"awaiting","at":"@9s","seq":9,"prompt":"call"}
409 prompt kind has changed since it was shown (at place 10 of the log, now at 11): read it again
  {"status":"awaiting","at":"@11s","seq":11,"prompt":"kind"}
409 prompt options has changed since it was shown (at place 12 of the log, now at 13): read it again
  {"status":"awaiting","at":"@13s","seq":13,"prompt":"options"}
409 prompt title has changed since it was shown (at place 19 of the log, now at 20): read it again
  {"status":"awaiting","at":"@20s","seq":20,"prompt":"title"}
-- request --
answer {"prompt":"other","answers":[{"question":"permission","selected":["once"]}],"by":"ada","asked":17}
answer {"prompt":"other","answers":[{"question":"permission","selected":["once"]}],"by":"ada","asked":3}
dismiss {"prompt":"bare","by":"ada","asked":1}
-- result --
409 prompt other has changed since it was shown (at place 17 of the log, now at 18): read it again
  {"status":"awaiting","at":"@18s","seq":18,"prompt":"other"}
409 prompt other has changed since it was shown (at place 3 of the log, now at 18): read it again
  {"status":"awaiting","at":"@18s","seq":18,"prompt":"other"}
409 prompt bare has changed since it was shown (at place 1 of the log, now at 15): read it again
  {"status":"awaiting","at":"@15s","seq":15,"prompt":"bare"}
-- request --
answer {"prompt":"other","answers":[{"question":"permission","selected":["once"]}],"by":"bob","asked":6}
answer {"prompt":"other","answers":[{"question":"permission","selected":["once"]}],"by":"ada","asked":5}
answer {"prompt":"other","answers":[{"question":"permission","selected":["once"]}],"by":"ada","asked":99}
answer {"prompt":"other","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
-- result --
s 22 prompt.answered {"prompt":"other","answers":[{"question":"permission","selected":["once"]}],"by":"bob","owed":true}
409 prompt other has changed since it was shown (at place 5 of the log, now at 18): read it again
  {"status":"answered","at":"@20s","seq":18,"prompt":"other"}
nothing to append, see 22
nothing to append, see 22
-- facts --
23 prompt.delivered {"prompt":"other"}
-- request --
answer {"prompt":"other","answers":[{"question":"permission","selected":["once"]}],"by":"ada","asked":5}
answer {"prompt":"other","answers":[{"question":"permission","selected":["once"]}],"by":"ada","asked":6}
-- result --
409 prompt other has changed since it was shown (at place 5 of the log, now at 18): read it again
  {"status":"answered","at":"@20s","seq":18,"prompt":"other"}
nothing to append, see 22
