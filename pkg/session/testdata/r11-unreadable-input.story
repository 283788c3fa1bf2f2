Unreadable input is parked with its reason and counted; it moves the place in the log, and the rest of its commit counts
(R11).

-- facts --
1 session.opened {"incarnation":"17"}
2 raw not json at all
3 raw {"a":"batch is a list"}
4 raw []
5 turn.started {"turn":"t1","cause":"message"}
5 event {"specversion":"1.0","id":"x"}
5 event 42
5 specversion=0.3 tool.started {"call":"c1","turn":"t1","name":"bash"}
5 subject=c9 tool.started {"call":"c1","turn":"t1","name":"bash"}
5 session=s2 tool.started {"call":"c1","turn":"t1","name":"bash"}
5 subject=c1 tool.started {"call":7}
5 tool.started {"turn":"t1"}
5 time=yesterday tool.started {"call":"c1","turn":"t1","name":"bash"}
5 epoch=0 tool.started {"call":"c1","turn":"t1","name":"bash"}
5 tool.started {"call":"c2","turn":"t1","name":"bash"}
6 by=retry turn.completed {"turn":"t1"}
7 by=stranger turn.completed {"turn":"t1"}
8 turn.bent {"turn":"t1"}
8 type=turn.completed turn.completed {"turn":"t1"}
8 type=com.example.order.placed turn.completed {"turn":"t1"}
-- parked --
2[-1] malformed: malformed: not a CloudEvents JSON batch: invalid character 'o' in literal null (expecting 'u')
3[-1] malformed: malformed: not a CloudEvents JSON batch: json: cannot unmarshal object into Go value of type []json.RawMessage
4[-1] malformed: malformed: a batch of 0 facts: want 1 to 2000
5[1] malformed: source: malformed: missing
5[2] malformed: malformed: not a CloudEvent: json: cannot unmarshal number into Go value of type events.wire
5[3] malformed: specversion: malformed: "0.3": want 1.0
5[4] malformed: subject: malformed: "c9", but the data says "c1"
5[5] malformed: session: malformed: "s2", but the subject says "s"
5[6] malformed: malformed: data: json: cannot unmarshal number into Go struct field ToolStarted.call of type string
5[7] malformed: call: malformed: missing
5[8] malformed: time: malformed: "yesterday": want RFC 3339
5[9] malformed: epoch: malformed: missing or 0: want 1 or more
6[0] out-of-role: out of role: turn.completed is not for the retry to say
7[0] out-of-role: out of role: turn.completed is not for the stranger to say
-- ignored --
(none)
-- state phase seq commits parked unknown_facts tools --
phase: "running"
seq: 8
commits: 8
parked: 14
unknown_facts: 3
tools: {"c2":{"name":"bash","turn":"t1","since":"@5s","epoch":1,"background":false}}
