package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func decode(t *testing.T, body []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(body, to); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
}

// parkedOf returns what is parked of a session, oldest first.
func (c *cell) parkedOf(filter string, n int) []*nats.Msg {
	c.t.Helper()
	sub, err := c.js.OrderedConsumer(c.t.Context(), "HF_PARKED", orderedFrom(filter))
	if err != nil {
		c.t.Fatal(err)
	}
	var all []*nats.Msg
	for range n {
		m, err := sub.Next()
		if err != nil {
			c.t.Fatalf("%d of %d parked: %v", len(all), n, err)
		}
		all = append(all, &nats.Msg{Subject: m.Subject(), Header: m.Headers(), Data: m.Data()})
	}
	return all
}

// event returns a fact of s1 with some attributes changed.
func event(inc string, changes map[string]any) string {
	e := map[string]any{"specversion": "1.0", "id": "x", "source": "/harness/h1/" + inc,
		"type": "holdfast.tool.started", "subject": "c9",
		"time": time.Now().Format(time.RFC3339Nano), "session": "s1", "epoch": 1,
		"data": map[string]any{"call": "c9", "turn": "t1", "name": "x"}}
	for k, v := range changes {
		if v == nil {
			delete(e, k)
		} else {
			e[k] = v
		}
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestEachKindOfBadInputIsParkedOrIgnoredAlone(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	good := func(id string) string {
		return event(inc, map[string]any{"subject": id, "data": map[string]any{"call": id, "turn": "t1", "name": "x"}})
	}
	parked, ignored := 0.0, 0.0
	for i, x := range []struct {
		what, body   string
		parks, whole bool
		why          string // reason for which it was ignored
	}{
		{"no JSON", `hello`, true, true, ""},
		{"an object", `{}`, true, true, ""},
		{"an empty list", `[]`, true, true, ""},
		{"2,001 facts", "[" + strings.Repeat(`{},`, 2000) + `{}]`, true, true, ""},
		{"a number", `5`, true, false, ""},
		{"a list in the list", `[1]`, true, false, ""},
		{"specversion", event(inc, map[string]any{"specversion": "0.3"}), true, false, ""},
		{"no specversion", event(inc, map[string]any{"specversion": nil}), true, false, ""},
		{"no id", event(inc, map[string]any{"id": nil}), true, false, ""},
		{"no source", event(inc, map[string]any{"source": nil}), true, false, ""},
		{"no type", event(inc, map[string]any{"type": nil}), true, false, ""},
		{"time", event(inc, map[string]any{"time": "yesterday"}), true, false, ""},
		{"epoch as text", event(inc, map[string]any{"epoch": "1"}), true, false, ""},
		{"epoch 0", event(inc, map[string]any{"epoch": 0}), true, false, ""},
		{"another session in the body", event(inc, map[string]any{"session": "s2"}), true, false, ""},
		{"subject and data disagree", event(inc, map[string]any{"subject": "c8"}), true, false, ""},
		{"no call", event(inc, map[string]any{"subject": "", "data": map[string]any{"turn": "t1", "name": "x"}}), true,
			false, ""},
		{"call is a number", event(inc, map[string]any{"data": map[string]any{"call": 9}}), true, false, ""},
		{"a long id", event(inc,
			map[string]any{"subject": strings.Repeat("x", 129),
				"data": map[string]any{"call": strings.Repeat("x", 129), "turn": "t1", "name": "x"}}), true, false, ""},
		{"large data", event(inc,
			map[string]any{"data": map[string]any{"call": "c9", "turn": "t1", "name": "x",
				"input": strings.Repeat("x", 257<<10)}}), true, false, ""},
		{"out of role", event(inc,
			map[string]any{"type": "holdfast.prompt.dismissed", "subject": "p", "data": map[string]any{"prompt": "p"}}),
			true, false, ""},
		{"an epoch of the future", event(inc, map[string]any{"epoch": 2}), false, false, "epoch"},
		{"another harness", event(inc, map[string]any{"source": "/harness/h2/" + inc}), false, false, "source"},
		{"another incarnation", event(inc, map[string]any{"source": "/harness/h1/1"}), false, false, "source"},
		{"an unknown call", event(inc, map[string]any{"type": "holdfast.tool.completed"}), false, false, "unknown"},
	} {
		id := fmt.Sprint("g", i)
		body := "[" + good(id) + "," + x.body + "]"
		if x.whole {
			body = x.body
		}
		if _, err := c.publish("s1", []byte(body)); err != nil {
			t.Fatalf("%s: %v", x.what, err)
		}
		if x.parks {
			parked++
		} else {
			ignored++
		}
		d := c.settled("s1")
		if d["parked"] != parked || at(d, "ignored", "count") != ignored || d["seq"] != float64(c.seq["s1"]) {
			t.Errorf("%s: parked %v ignored %v, want %v %v", x.what, d["parked"], d["ignored"], parked, ignored)
			parked, ignored = d["parked"].(float64), at(d, "ignored", "count").(float64)
		}
		if x.why != "" && (at(d, "ignored", "last", "why") != x.why ||
			at(d, "ignored", "last", "writer") != "harness" || at(d, "ignored", "last", "seq") != d["seq"]) {
			t.Errorf("%s: ignored %v", x.what, d["ignored"])
		}
		if (at(d, "tools", id) != nil) == x.whole || at(d, "tools", "c9") != nil {
			t.Errorf("%s: the others do not count, or this one does: %v", x.what, d["tools"])
		}
	}
	for _, m := range c.parkedOf("hf.parked.*.h1.s1", int(parked)) {
		if m.Header.Get("Hf-Parked-Reason") == "" || len(m.Data) == 0 || m.Header.Get("Content-Type") == "" {
			t.Errorf("parked: %s %v", m.Subject, m.Header)
		}
	}
}

// send publishes to any subject of the log, with or without a guard.
func (c *cell) send(subject, body string, guard int) uint64 {
	c.t.Helper()
	m := nats.NewMsg(subject)
	m.Data = []byte(body)
	if guard >= 0 {
		m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.Itoa(guard))
		m.Header.Set("Nats-Expected-Last-Subject-Sequence-Subject", subject[:strings.LastIndex(subject, ".")]+".*")
	}
	ack, err := c.js.PublishMsg(c.t.Context(), m)
	if err != nil {
		c.t.Fatal(err)
	}
	return ack.Sequence
}

func TestStrangeSubjectsDelayNoOtherSession(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	long := strings.Repeat("x", 129)
	c.send("hf.log.h1."+long+".harness", `[`+event(inc, nil)+`]`, 0)
	c.send("hf.log.h1.s=1.harness", `[`+event(inc, nil)+`]`, 0)
	c.send("hf.log.h1.s9.stranger", `[`+event(inc, map[string]any{"session": "s9"})+`]`, 0)
	c.begin("s1", inc)
	// no guard at all
	n := c.send("hf.log.h1.s1.harness", `[`+event(inc, nil)+`]`, -1)
	c.seq["s1"] = n
	d := c.settled("s1")
	if at(d, "tools", "c9") == nil {
		t.Errorf("a commit without a guard: %v", d)
	}
	for i, want := range []string{"129", `=XX: "s=1"`, "stranger"} {
		if m := c.parkedOf("hf.parked.>", 3)[i]; !strings.Contains(m.Header.Get("Hf-Parked-Reason"), want) {
			t.Errorf("parked: %s %v, want %q", m.Subject, m.Header, want)
		}
	}
}

// An id may hold any byte; source has it unchanged or encoded.
func TestIDsOfAnyBytes(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.ticket("my=2Eh=2F1")
	for i, source := range []string{"/harness/my.h/1/" + inc, "/harness/my=2Eh=2F1/" + inc} {
		session := fmt.Sprint("a.b ", i)
		body, err := json.Marshal([]map[string]any{{"specversion": "1.0", "id": "1", "source": source,
			"type": "holdfast.session.opened", "subject": session,
			"session": session, "epoch": 1, "data": map[string]any{"incarnation": inc, "exclusive": false}}})
		if err != nil {
			t.Fatal(err)
		}
		token := fmt.Sprint("a=2Eb=20", i)
		c.send("hf.log.my=2Eh=2F1."+token+".harness", string(body), 0)
		d := c.entry("session.my=2Eh=2F1."+token, func(d map[string]any) bool { return true })
		if d["harness"] != "my.h/1" || d["session"] != session || d["owned"] != true {
			t.Errorf("%s: %v", source, d)
		}
	}
}

func TestLimitsOfASession(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	fill := func(kind, key, more string, n int) {
		var fs []fact
		for i := range n {
			id := fmt.Sprint(key, i)
			fs = append(fs, fact{kind, id, fmt.Sprintf(`{%q:%q%s}`, key, id, more)})
			if len(fs) == 600 || i == n-1 {
				c.mustAppend("s1", inc, 1, fs...)
				fs = nil
			}
		}
	}
	fill("tool.started", "call", `,"turn":"t1","name":"x"`, 1001)
	fill("prompt.requested", "prompt", `,"turn":"t1","kind":"question","delivery":"message","blocking":false`, 101)
	fill("message.accepted", "message", `,"content":"x","synthetic":true`, 1001)
	d := c.settled("s1")
	if n := len(d["tools"].(map[string]any)); n != 1000 {
		t.Errorf("%d calls", n)
	}
	if n := len(d["prompts"].(map[string]any)); n != 100 {
		t.Errorf("%d prompts", n)
	}
	if n := len(d["queue"].([]any)); n != 1000 {
		t.Errorf("%d messages", n)
	}
	if at(d, "ignored", "count") != 3.0 || at(d, "ignored", "last", "why") != "limit" ||
		at(d, "ignored", "last", "type") != "holdfast.message.accepted" {
		t.Errorf("ignored: %v", d["ignored"])
	}
	long := strings.Repeat("é", 3000)
	c.begin("s2", inc, fact{"tool.started", "c",
		`{"call":"c","turn":"t1","name":"` + long + `","title":"` + long + `"}`},
		fact{"turn.failed", "t1", `{"turn":"t1","error":{"kind":"x","text":"` + long + `"},"had_output":false}`})
	d = c.settled("s2")
	text, _ := at(d, "last_turn", "error", "text").(string)
	if len(text) > 2048 || !strings.HasSuffix(text, "…") || len(text) < 2000 {
		t.Errorf("error text of %d bytes", len(text))
	}
	c.begin("s3", inc, fact{"tool.started", "c",
		`{"call":"c","turn":"t1","name":"` + long + `","title":"` + long + `"}`})
	d = c.settled("s3")
	name, _ := at(d, "tools", "c", "name").(string)
	title, _ := at(d, "tools", "c", "title").(string)
	if len(name) > 100 || len(title) > 200 || len(name) < 95 || len(title) < 195 || !strings.HasSuffix(name, "…") ||
		!strings.HasSuffix(title, "…") {
		t.Errorf("name of %d, title of %d bytes", len(name), len(title))
	}
	c.mustAppend("s3", inc, 1, fact{"turn.started", "t2",
		`{"turn":"t2","cause":"message","synthetic":false,"options":"` + strings.Repeat("x", 17<<10) + `"}`})
	if d = c.settled("s3"); d["parked"] != 1.0 || at(d, "turn", "id") != "t1" {
		t.Errorf("large options: %v", d)
	}
}

func orderedFrom(filter string) jetstream.OrderedConsumerConfig {
	return jetstream.OrderedConsumerConfig{FilterSubjects: []string{filter}}
}
