package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// settled waits until the document has the last commit of the session.
func (c *cell) settled(session string) map[string]any {
	c.t.Helper()
	return c.entry("session.h1."+session, func(d map[string]any) bool {
		return d["seq"].(float64) >= float64(c.seq[session])
	})
}

// fresh returns the session as the ledger has it now; the next append uses its place as guard.
func (c *cell) fresh(session string) map[string]any {
	c.t.Helper()
	code, reply := c.ask("ledger.get", fmt.Sprintf(`{"harness":"h1","session":%q}`, session))
	doc, ok := reply["document"].(map[string]any)
	if code != "" || !ok {
		c.t.Fatalf("get %s: %s %v", session, code, reply)
	}
	c.seq[session] = uint64(doc["seq"].(float64))
	return doc
}

func (c *cell) answer(session, prompt string) (code string, reply map[string]any) {
	c.t.Helper()
	return c.ask("ledger.answer",
		fmt.Sprintf(`{"harness":"h1","session":%q,"prompt":%q,"by":"ada","answers":[{"question":"q",`+
			`"selected":["a"]}]}`, session, prompt))
}

// changes returns the facts of one commit: kind and data.
func (c *cell) changes(seq any) []map[string]any {
	c.t.Helper()
	log, err := c.js.Stream(c.t.Context(), "HF_LOG")
	if err != nil {
		c.t.Fatal(err)
	}
	m, err := log.GetMsg(c.t.Context(), uint64(seq.(float64)))
	if err != nil {
		c.t.Fatal(err)
	}
	var batch []map[string]any
	decode(c.t, m.Data, &batch)
	return batch
}

func kinds(batch []map[string]any) string {
	s := ""
	for _, e := range batch {
		s += fmt.Sprint(e["type"], " ")
	}
	return s
}

func prompt(id, more string) fact {
	return fact{"prompt.requested", id, `{"prompt":"` + id + `",` + question + more + `}`}
}

// begin opens a session with an open turn.
func (c *cell) begin(session, inc string, more ...fact) {
	c.t.Helper()
	c.beginBy(session, inc, `{}`, more...)
}

// beginBy is begin with a policy.
func (c *cell) beginBy(session, inc, policy string, more ...fact) {
	c.t.Helper()
	c.mustAppend(session, inc, 1, append([]fact{{"session.opened", session,
		`{"incarnation":"` + inc + `","policy":` + policy + `}`},
		{"turn.started", "t1", `{"turn":"t1","cause":"message","synthetic":false}`}}, more...)...)
}

// The receipt of an answer depends on the session's owner.
func TestAnAnswerOwesATurnOrNot(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	call := fact{"tool.started", "c", `{"call":"c","turn":"t1","name":"ask"}`}
	released := fact{"session.released", "", `{}`}
	claim := func(s, inc string) {
		c.mustAppend(s, inc, 2, fact{"session.claimed", s, `{"incarnation":"` + inc + `"}`})
	}
	for name, x := range map[string]struct {
		asked   []fact
		release bool
		claim   bool
		want    string
	}{
		"owned": {[]fact{call, prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`)}, false, false,
			"holdfast.prompt.answered "},
		"owned-message": {[]fact{prompt("p", `,"turn":"t1","delivery":"message"`)}, false, false,
			"holdfast.prompt.answered "},
		"older-epoch": {[]fact{call, prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`)}, true, true,
			"holdfast.prompt.answered holdfast.tool.completed holdfast.turn.requested "},
		"unowned": {[]fact{call, prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`)}, true, false,
			"holdfast.prompt.answered holdfast.tool.completed holdfast.turn.requested "},
		"message": {[]fact{prompt("p", `,"turn":"t1","delivery":"message"`)}, true, false,
			"holdfast.prompt.answered holdfast.message.accepted holdfast.turn.requested "},
		"callback": {[]fact{prompt("p", `,"turn":"t1","delivery":"callback","on_owner_loss":"keep"`)}, true,
			false, "holdfast.prompt.answered holdfast.turn.requested "},
		"another-blocks": {[]fact{call, prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`),
			prompt("o", `,"turn":"t1","delivery":"message"`)}, true, false,
			"holdfast.prompt.answered holdfast.tool.completed "},
		"another-waits": {[]fact{call, prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`),
			prompt("o", `,"turn":"t1","delivery":"message","blocking":false`)}, true, false,
			"holdfast.prompt.answered holdfast.tool.completed holdfast.turn.requested "},
	} {
		t.Run(name, func(t *testing.T) {
			c.begin(name, inc, x.asked...)
			if x.release {
				released.subject = name
				c.mustAppend(name, inc, 1, released)
				c.settled(name)
				c.fresh(name)
			}
			if x.claim {
				claim(name, inc)
				c.settled(name)
			}
			code, reply := c.answer(name, "p")
			if code != "" {
				t.Fatalf("%s %v", code, reply)
			}
			batch := c.changes(reply["seq"])
			if got := kinds(batch); got != x.want {
				t.Errorf("said %s, want %s", got, x.want)
			}
			for _, e := range batch {
				if e["type"] == "holdfast.turn.requested" &&
					(at(e, "data", "cause") != "answer" || at(e, "data", "of_turn") != "t1") {
					t.Errorf("continues: %v", e)
				}
				if e["type"] == "holdfast.tool.completed" &&
					(at(e, "data", "synthetic") != true || at(e, "data", "output", "answers") == nil ||
						at(e, "data", "output", "questions") == nil) {
					t.Errorf("output: %v", e)
				}
				if e["source"] != "/person/ada" || e["session"] != name || e["specversion"] != "1.0" {
					t.Errorf("envelope: %v", e)
				}
			}
			again, second := c.answer(name, "p")
			if again != "" || second["seq"] != reply["seq"] {
				t.Errorf("again: %s %v", again, second)
			}
		})
	}
}

func TestDeadlinesAreKeptAlsoWhenEverythingWasDown(t *testing.T) {
	c := up(t)
	inc := c.lease("ready", lasting)
	late := func(d time.Duration) string {
		return `,"deadline":"` + time.Now().Add(d).Format(time.RFC3339Nano) + `"`
	}
	due, pulse := time.Now().Add(700*time.Millisecond), natstest.Feel(t)
	c.begin("s1", inc, fact{"tool.started", "c", `{"call":"c","turn":"t1","name":"ask"}`},
		prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`+late(700*time.Millisecond)))
	if p := at(c.settled("s1"), "prompts", "p", "deadline"); p == nil {
		t.Error("the document has no deadline")
	}
	v := c.entry("blocker.h1.s1.s1.p", func(d map[string]any) bool { return d["status"] == "expired" })
	took := time.Since(due)
	if took > soon(pulse) || took < -100*time.Millisecond || v["reason"] != "deadline" || v["deadline"] == nil {
		t.Errorf("expired %s after its deadline: %v", took, v)
	}
	w := c.entry("work.h1.s1", func(d map[string]any) bool { return at(d, "prompts", "p", "status") == "expired" })
	if at(w, "prompts", "p", "reason") != "deadline" {
		t.Errorf("work: %v", w)
	}
	c.begin("s3", inc, fact{"tool.started", "c", `{"call":"c","turn":"t1","name":"ask"}`},
		prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`+late(700*time.Millisecond)),
		fact{"session.released", "s3", `{}`})
	d := c.entry("session.h1.s3", func(d map[string]any) bool { return ending(d, "tool", "c") != nil })
	if e := ending(d, "tool", "c"); e["outcome"] != "failed" || e["reason"] != "deadline" ||
		ending(d, "prompt", "p")["outcome"] != "expired" || at(d, "pending", "turn", "cause") != "answer" {
		t.Errorf("without an owner: %v", d)
	}
	due = time.Now().Add(500 * time.Millisecond)
	c.begin("s2", inc, prompt("p", `,"turn":"t1","delivery":"message"`+late(500*time.Millisecond)))
	c.settled("s2")
	url := c.nc.ConnectedAddr()
	c.nc.Close()
	c.stop()
	c.until("the deadline", func() bool { return time.Now().After(due) })
	c.start(url)
	began, pulse := time.Now(), natstest.Feel(t)
	c.entry("blocker.h1.s2.s2.p", func(d map[string]any) bool { return d["status"] == "expired" })
	if took := time.Since(began); took > soon(pulse) {
		t.Errorf("expired %s after the start", took)
	}
}

// A person's chat message supersedes a prompt with or without an owner (P14); a synthetic one does not.
func TestAMessageSupersedesAQuestion(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc, prompt("keep", `,"turn":"t1","delivery":"message"`),
		prompt("callback", `,"turn":"t1","delivery":"callback"`))
	c.mustAppend("s1", inc, 1, fact{"message.accepted", "m0", `{"message":"m0","content":"auto","synthetic":true}`})
	if d := c.settled("s1"); at(d, "prompts", "keep", "status") != "awaiting" {
		t.Errorf("a synthetic message: %v", d)
	}
	c.mustAppend("s1", inc, 1, fact{"message.accepted", "m1",
		`{"message":"m1","content":"never mind","synthetic":false,"by":"ada"}`})
	d := c.settled("s1")
	if at(d, "prompts", "keep", "status") != "superseded" || at(d, "prompts", "callback", "status") != "awaiting" ||
		len(d["queue"].([]any)) != 2 {
		t.Errorf("superseded: %v", d)
	}
	w := c.entry("work.h1.s1", func(d map[string]any) bool {
		return at(d, "prompts", "keep", "status") == "superseded"
	})
	if at(w, "prompts", "callback") != nil {
		t.Errorf("work: %v", w)
	}
	code, reply := c.answer("s1", "keep")
	if code != "410" || reply["status"] != "superseded" {
		t.Errorf("answer to it: %s %v", code, reply)
	}
}

func TestMalformedQuestionsStillBlock(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	for i, questions := range []string{`"what?"`, `[{"question":"no id"}]`, `[{"id":"q"}]`, `[1]`} {
		id := fmt.Sprint("p", i)
		c.mustAppend("s1", inc, 1, fact{"prompt.requested", id,
			`{"prompt":"` + id + `","turn":"t1","kind":"strange","title":"Raw","questions":` + questions +
				`,"delivery":"message"}`})
		d := c.settled("s1")
		v := c.entry("blocker.h1.s1.s1."+id, func(d map[string]any) bool { return true })
		if d["phase"] != "waiting" || v["status"] != "awaiting" || v["title"] != "Raw" || v["kind"] != "strange" ||
			d["parked"] != float64(i+1) {
			t.Errorf("%s: %v %v", questions, d, v)
		}
	}
	c.mustAppend("s1", inc, 1, fact{"prompt.requested", "perm",
		`{"prompt":"perm","turn":"t1","kind":"permission","title":"rm -rf?","delivery":"callback"}`})
	v := c.entry("blocker.h1.s1.s1.perm", func(d map[string]any) bool { return true })
	q, _ := v["questions"].([]any)
	if len(q) != 1 || at(q[0].(map[string]any), "id") != "permission" {
		t.Errorf("permission: %v", v)
	}
	code, reply := c.ask("ledger.answer",
		`{"harness":"h1","session":"s1","prompt":"perm","by":"ada","answers":[{"question":"permission",`+
			`"selected":["once"]}]}`)
	if code != "" {
		t.Errorf("allow: %s %v", code, reply)
	}
	c.fresh("s1")
	c.mustAppend("s1", inc, 1, fact{"turn.completed", "t1", `{"turn":"t1"}`})
	v = c.entry("blocker.h1.s1.s1.p0", func(d map[string]any) bool { return d["status"] != "awaiting" })
	if v["status"] != "withdrawn" || v["reason"] != "turn-ended" {
		t.Errorf("after its turn: %v", v)
	}
	code, reply = c.answer("s1", "p0")
	if code != "410" || reply["status"] != "withdrawn" || reply["reason"] != "turn-ended" || reply["at"] == nil ||
		reply["seq"] == nil {
		t.Errorf("answer: %s %v", code, reply)
	}
}

// A settled entry stays as long as configured, then its key expires; the harness gets a nudge at once.
func TestASettledEntryExpires(t *testing.T) {
	// long enough to be read before it expires
	c := up(t, "--settled-prompts-kept-for", "3s")
	inc := c.lease("ready", lasting)
	nudges, err := c.nc.SubscribeSync("hf.nudge.h1")
	if err != nil {
		t.Fatal(err)
	}
	c.begin("s1", inc, prompt("p", `,"turn":"t1","delivery":"callback"`))
	c.settled("s1")
	began, pulse := time.Now(), natstest.Feel(t)
	code, reply := c.ask("ledger.dismiss", `{"harness":"h1","session":"s1","prompt":"p","by":"ada"}`)
	if code != "" {
		t.Fatalf("dismiss: %s %v", code, reply)
	}
	m, err := nudges.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	var nudge map[string]any
	decode(t, m.Data, &nudge)
	if nudge["session"] != "s1" || nudge["seq"] != reply["seq"] {
		t.Errorf("nudge: %v", nudge)
	}
	v := c.entry("blocker.h1.s1.s1.p", func(d map[string]any) bool { return d["status"] == "dismissed" })
	if v["by"] != "ada" || v["closed_at"] == nil || v["delivered_at"] != nil {
		t.Errorf("dismissed: %v", v)
	}
	c.gone("blocker.h1.s1.s1.p")
	if took := time.Since(began); took < 2900*time.Millisecond || took > 4*time.Second+soon(pulse) {
		t.Errorf("gone after %s", took)
	}
	w := c.entry("work.h1.s1", func(map[string]any) bool { return true })
	if at(w, "prompts", "p", "status") != "dismissed" || at(w, "prompts", "p", "by") != "ada" {
		t.Errorf("work: %v", w)
	}
	code, reply = c.answer("s1", "p")
	if code != "410" || reply["status"] != "dismissed" || reply["by"] != "ada" {
		t.Errorf("answer: %s %v", code, reply)
	}
	c.fresh("s1")
	c.mustAppend("s1", inc, 1, fact{"prompt.delivered", "p", `{"prompt":"p"}`})
	c.gone("work.h1.s1")
}
