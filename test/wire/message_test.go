package wire

import (
	"fmt"
	"strings"
	"testing"
)

// send sends a message of a person.
func (c *cell) sends(session, message, more string) (code string, reply map[string]any) {
	c.t.Helper()
	return c.ask("compaction.send",
		fmt.Sprintf(`{"harness":"h1","session":%q,"message":%q,"by":"ada"%s}`, session, message, more))
}

// queue returns the ids of the queued messages.
func queue(d map[string]any) string {
	all, _ := d["queue"].([]any)
	var ids []string
	for _, m := range all {
		ids = append(ids, fmt.Sprint(m.(map[string]any)["message"]))
	}
	return strings.Join(ids, " ")
}

// work waits until a session has this work.
func (c *cell) work(session string, ok func(map[string]any) bool) map[string]any {
	c.t.Helper()
	return c.entry("work.h1."+session, ok)
}

// take starts the requested turn of a session, and returns its id.
func (c *cell) take(session, inc string, epoch int) string {
	c.t.Helper()
	w := c.work(session, func(d map[string]any) bool { return at(d, "turn", "turn") != nil })
	turn := at(w, "turn", "turn").(string)
	c.fresh(session)
	c.mustAppend(session, inc, epoch,
		fact{"turn.started", turn,
			`{"turn":"` + turn + `","cause":"` + at(w, "turn", "cause").(string) + `","synthetic":false}`})
	return turn
}

func (c *cell) completes(session, inc string, epoch int, turn string) {
	c.t.Helper()
	c.mustAppend(session, inc, epoch, fact{"turn.completed", turn, `{"turn":"` + turn + `"}`})
}

// Messages are handed out in the order in which they were accepted, each once, with their content; the next one when
// the turn before has completed (C7).
func TestMessagesAreHandedOutInOrder(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	seqs := map[string]any{}
	for i, m := range []string{"m1", "m2", "m3"} {
		code, reply := c.sends("s1", m, fmt.Sprintf(`,"content":{"text":"hello %d"}`, i))
		if code != "" || reply["seq"] == nil {
			t.Fatalf("send %s: %s %v", m, code, reply)
		}
		seqs[m] = reply["seq"]
	}
	batch := c.changes(seqs["m1"])
	if stored := c.stored(seqs["m1"]); kinds(batch) != "holdfast.message.accepted " ||
		batch[0]["source"] != "/person/ada" || stored.Subject != "hf.log.h1.s1.compaction" ||
		at(batch[0], "data", "by") != "ada" || at(batch[0], "data", "synthetic") != false {
		t.Errorf("accepted: %s %v", stored.Subject, batch)
	}
	d := c.fresh("s1")
	if queue(d) != "m1 m2 m3" || at(d, "pending", "turn") != nil || d["phase"] != "running" {
		t.Errorf("while a turn runs: %v", d)
	}
	c.completes("s1", inc, 1, "t1")
	for i, m := range []string{"m1", "m2", "m3"} {
		w := c.work("s1", func(d map[string]any) bool { return at(d, "turn", "message") == m })
		if at(w, "turn", "cause") != "message" || at(w, "turn", "content", "text") != fmt.Sprint("hello ", i) ||
			at(w, "turn", "ref") != nil || w["compaction"] != nil {
			t.Errorf("work: %v", w)
		}
		turn := c.take("s1", inc, 1)
		d = c.settled("s1")
		if at(d, "turn", "message") != m || strings.Contains(queue(d), m) {
			t.Errorf("taken: %v", d)
		}
		c.completes("s1", inc, 1, turn)
	}
	c.gone("work.h1.s1")
	if d = c.settled("s1"); d["queue"] != nil || d["phase"] != "idle" || at(d, "ignored", "count") != 0.0 {
		t.Errorf("all is said: %v", d)
	}
	// also when it was handed out long ago
	for m, seq := range seqs {
		i := int(m[1] - '1')
		if code, reply := c.sends("s1", m, fmt.Sprintf(`,"content":{ "text" : "hello %d" }`, i)); code != "" ||
			reply["seq"] != seq {
			t.Errorf("%s again: %s %v, want %v", m, code, reply, seq)
		}
		if code, reply := c.sends("s1", m, `,"content":"else"`); code != "409" || reply["status"] != "delivered" ||
			reply["seq"] == nil {
			t.Errorf("%s with another content: %s %v", m, code, reply)
		}
	}
	if after := c.fresh("s1"); after["seq"] != d["seq"] {
		t.Errorf("sending again said something: %v, was %v", after["seq"], d["seq"])
	}
}

// An idle session's message and the turn for it are one commit; content may be any JSON, or a reference.
func TestContentTravelsAsItIs(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	for i, content := range []string{`"text"`, `5`, `false`, `[]`, `{"a":[1,{"b":"ü\u0000\n<&>"}]}`, `""`,
		`"` + strings.Repeat("x", 200<<10) + `"`} {
		s := fmt.Sprint("s", i)
		c.mustAppend(s, inc, 1, fact{"session.opened", s, `{"incarnation":"` + inc + `"}`})
		code, reply := c.sends(s, "m1", `,"content":`+content)
		if code != "" {
			t.Errorf("%.40s: %s %v", content, code, reply)
			continue
		}
		if got := kinds(c.changes(reply["seq"])); got != "holdfast.message.accepted holdfast.turn.requested " {
			t.Errorf("one commit: %s", got)
		}
		w := c.work(s, func(d map[string]any) bool { return at(d, "turn", "message") == "m1" })
		var want any
		decode(t, []byte(content), &want)
		if fmt.Sprint(at(w, "turn", "content")) != fmt.Sprint(want) {
			t.Errorf("%.40s came as %.60v", content, at(w, "turn", "content"))
		}
		if d := c.fresh(s); strings.Contains(fmt.Sprint(d), "xxxxxxxx") {
			t.Error("the document holds content")
		}
	}
}

// Content that is too large for a fact is stored as an object by the sender, with any client, and the message has the
// object's name.
func TestContentByReference(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.mustAppend("s1", inc, 1, fact{"session.opened", "s1", `{"incarnation":"` + inc + `"}`})
	objects, err := c.js.ObjectStore(t.Context(), "hf_objects")
	if err != nil {
		t.Fatal(err)
	}
	large := `"` + strings.Repeat("y", 600<<10) + `"`
	if _, err := objects.PutString(t.Context(), "my-object", large); err != nil {
		t.Fatal(err)
	}
	code, first := c.sends("s1", "m1", `,"ref":"my-object"`)
	if code != "" {
		t.Fatalf("send: %s %v", code, first)
	}
	if code, again := c.sends("s1", "m1", `,"ref":"my-object"`); code != "" || again["seq"] != first["seq"] {
		t.Errorf("again: %s %v, first %v", code, again, first)
	}
	w := c.work("s1", func(d map[string]any) bool { return at(d, "turn", "message") == "m1" })
	if at(w, "turn", "ref") != "my-object" || at(w, "turn", "content") != nil {
		t.Errorf("work: %v", w)
	}
	if have, err := objects.GetString(t.Context(), at(w, "turn", "ref").(string)); err != nil || have != large {
		t.Errorf("the object: %v, %d bytes", err, len(have))
	}
	c.take("s1", inc, 1)
	if d := c.settled("s1"); strings.Contains(fmt.Sprint(d), "my-object") {
		t.Errorf("the document names what was delivered: %v", d)
	}
}

// Each refusal has its code, and its body has the reason.
func TestSendRefuses(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	c.begin("closed", inc, fact{"session.closed", "closed", `{"reason":"finished"}`})
	if code, reply := c.sends("s1", "m1", `,"content":"x"`); code != "" {
		t.Fatalf("%s %v", code, reply)
	}
	before := c.fresh("s1")["seq"]
	for what, x := range map[string]struct{ session, message, more, code, field, want string }{
		"an unknown session": {"s9", "m", `,"content":"x"`, "404", "what", "session"},
		"closed":             {"closed", "m", `,"content":"x"`, "409", "status", "closed"},
		"no content":         {"s1", "m", ``, "400", "field", "content"},
		"no UTF-8":           {"s1", "m", ",\"content\":\"\xff\"", "400", "field", "content"},
		"null":               {"s1", "m", `,"content":null`, "400", "field", "content"},
		"both":               {"s1", "m", `,"content":"x","ref":"y"`, "400", "field", "content"},
		"no id":              {"s1", "", `,"content":"x"`, "400", "field", "message"},
		"a long id":          {"s1", strings.Repeat("x", 129), `,"content":"x"`, "400", "field", "message"},
		"synthetic as text":  {"s1", "m", `,"content":"x","synthetic":"no"`, "400", "field", "synthetic"},
		"large": {"s1", "m", `,"content":"` + strings.Repeat("x", 256<<10) + `"`, "413", "limit",
			"262144"},
		"nothing at that ref":  {"s1", "m", `,"ref":"nothing"`, "404", "what", "object"},
		"a long ref":           {"s1", "m", `,"ref":"` + strings.Repeat("x", 257) + `"`, "400", "field", "ref"},
		"another content":      {"s1", "m1", `,"content":"y"`, "409", "status", "queued"},
		"a reference, instead": {"s1", "m1", `,"ref":"nothing"`, "4", "", ""},
	} {
		code, reply := c.sends(x.session, x.message, x.more)
		if !strings.HasPrefix(code, x.code) ||
			x.field != "" && (reply[x.field] == nil ||
				!strings.Contains(fmt.Sprintf("%.0f %v", reply[x.field], reply[x.field]), x.want)) {
			t.Errorf("%s: %s %v, want %s with %s %q", what, code, reply, x.code, x.field, x.want)
		}
	}
	for body, field := range map[string]string{
		`{"harness":"h1","session":"s1","message":"m","content":"x"}`: "by",
		`{"session":"s1","message":"m","content":"x","by":"ada"}`:     "harness",
		`{"harness":"h1","message":"m","content":"x","by":"ada"}`:     "session",
		`{"harness":"h1","session":7}`:                                "session",
	} {
		if code, reply := c.ask("compaction.send", body); code != "400" ||
			!strings.Contains(fmt.Sprint(reply["field"]), field) || reply["reason"] == nil {
			t.Errorf("%s: %s %v, want 400 for %s", body, code, reply, field)
		}
	}
	if code, reply := c.ask("compaction.send", `[`); code != "400" || reply["reason"] == nil {
		t.Errorf("no JSON: %s %v", code, reply)
	}
	if d := c.fresh("s1"); d["seq"] != before || queue(d) != "m1" {
		t.Errorf("a refusal said something: %v", d)
	}
}

// A message can be withdrawn until a turn has taken it (C18).
func TestWithdraw(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	for _, m := range []string{"m1", "m2", "m3"} {
		c.sends("s1", m, `,"content":"x"`)
	}
	body := func(s, m string) string {
		return fmt.Sprintf(`{"harness":"h1","session":%q,"message":%q,"by":"bob"}`, s, m)
	}
	code, first := c.ask("compaction.withdraw", body("s1", "m1"))
	if d := c.fresh("s1"); code != "" || queue(d) != "m2 m3" || d["seq"] != first["seq"] ||
		ending(d, "message", "m1")["outcome"] != "withdrawn" {
		t.Errorf("withdrawn: %s %v %v", code, first, d)
	}
	if found := c.changes(first["seq"]); found[0]["source"] != "/person/bob" || at(found[0], "data", "by") != "bob" {
		t.Errorf("said %v", found)
	}
	if code, again := c.ask("compaction.withdraw", body("s1", "m1")); code != "" || again["seq"] != first["seq"] {
		t.Errorf("again: %s %v", code, again)
	}
	if code, reply := c.sends("s1", "m1", `,"content":"x"`); code != "" && code != "409" {
		t.Errorf("sent again after it was withdrawn: %s %v", code, reply)
	}
	if d := c.fresh("s1"); queue(d) != "m2 m3" {
		t.Errorf("a withdrawn message is back: %v", queue(d))
	}
	c.completes("s1", inc, 1, "t1")
	c.work("s1", func(d map[string]any) bool { return at(d, "turn", "message") == "m2" })
	// handed out, and not taken
	if code, reply := c.ask("compaction.withdraw", body("s1", "m2")); code != "" {
		t.Errorf("before it was taken: %s %v", code, reply)
	}
	c.work("s1", func(d map[string]any) bool { return at(d, "turn", "message") == "m3" })
	c.take("s1", inc, 1)
	for _, x := range []struct{ body, code, field, want string }{
		{body("s1", "m3"), "409", "status", "delivered"}, {body("s1", "m9"), "404", "what", "message"},
		{body("s9", "m1"), "404", "what", "session"},
		{`{"harness":"h1","session":"s1","message":"m3"}`, "400", "field", "by"},
		{`{"harness":"h1","session":"s1","by":"ada"}`, "400", "field", "message"},
	} {
		if code, reply := c.ask("compaction.withdraw", x.body); code != x.code ||
			!strings.Contains(fmt.Sprint(reply[x.field]), x.want) {
			t.Errorf("%s: %s %v, want %s", x.body, code, reply, x.code)
		}
	}
}

// A person's message supersedes waiting prompts (P14); a synthetic one does not.
func TestAMessageOvertakesQuestions(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--grace", "300ms")
	inc := c.lease("ready", lasting)
	ask := []fact{{"tool.started", "c", `{"call":"c","turn":"t1","name":"ask"}`},
		prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`)}
	c.begin("lives", inc, ask...)
	if code, reply := c.sends("lives", "s", `,"content":"x","synthetic":true`); code != "" {
		t.Fatalf("%s %v", code, reply)
	}
	if d := c.fresh("lives"); at(d, "prompts", "p", "status") != "awaiting" || d["phase"] != "waiting" ||
		queue(d) != "s" {
		t.Errorf("after a synthetic message: %v", d)
	}
	c.sends("lives", "m", `,"content":"y"`)
	w := c.work("lives", func(d map[string]any) bool { return at(d, "prompts", "p") != nil })
	if d := c.fresh("lives"); at(w, "prompts", "p", "status") != "superseded" || at(w, "turn") != nil ||
		queue(d) != "s m" || at(d, "tools", "c") == nil || d["phase"] != "running" {
		t.Errorf("the owner lives: %v %v", w, d)
	}
	// another incarnation takes over and dies
	dies := c.lease("ready", dying)
	c.begin("alone", dies, ask...)
	c.entry("session.h1.alone", func(d map[string]any) bool { return d["owned"] == false })
	code, reply := c.sends("alone", "m", `,"content":"never mind"`)
	if code != "" {
		t.Fatalf("%s %v", code, reply)
	}
	d := c.fresh("alone")
	if ending(d, "prompt", "p")["outcome"] != "superseded" || at(d, "tools", "c") != nil ||
		at(d, "pending", "turn", "message") != "m" || at(d, "pending", "turn", "of_turn") != "t1" ||
		at(d, "pending", "turn", "seq") != reply["seq"] {
		t.Errorf("without an owner: %v", d)
	}
}

// After an abandoned failure and after a stop the queue waits for a person; behind a retry it waits for the retry (C7).
func TestTheQueueWaitsAfterAFailure(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	for s, kind := range map[string]string{"later": "server_error", "never": "authentication"} {
		c.begin(s, inc)
		if code, reply := c.sends(s, "m1", `,"content":"x"`); code != "" {
			t.Fatalf("%s %v", code, reply)
		}
		c.fresh(s)
		c.fails(s, inc, 1, "t1", kind, `,"retry_after_ms":600000`)
	}
	c.retry("later", "scheduled")
	c.retry("never", "abandoned")
	c.sends("later", "m2", `,"content":"x"`)
	c.sends("never", "m2", `,"content":"x","synthetic":true`)
	for _, s := range []string{"later", "never"} {
		if d := c.fresh(s); queue(d) != "m1 m2" || at(d, "pending", "turn") != nil {
			t.Errorf("%s: %v", s, d)
		}
	}
	code, reply := c.sends("never", "m3", `,"content":"go on"`)
	if d := c.fresh("never"); code != "" || at(d, "pending", "turn", "message") != "m1" {
		t.Errorf("a person says something: %s %v %v", code, reply, d["pending"])
	}
	c.begin("stopped", inc)
	c.sends("stopped", "m1", `,"content":"x"`)
	c.ask("ledger.stop", session("stopped"))
	c.fresh("stopped")
	c.mustAppend("stopped", inc, 1, fact{"turn.stopped", "t1", `{"turn":"t1","actor":"person"}`})
	c.settled("stopped")
	if code, reply := c.ask("retry.resume", session("stopped")); code != "" {
		t.Errorf("resume: %s %v", code, reply)
	}
	if d := c.fresh("stopped"); at(d, "pending", "turn", "message") != "m1" {
		t.Errorf("resumed: %v", d)
	}
}
