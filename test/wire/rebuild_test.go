package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/test/program"
)

// all returns the contents of the bucket of documents and views.
func (c *cell) all() map[string]map[string]any {
	c.t.Helper()
	w, err := c.state.WatchAll(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	// the test is over either way
	defer func() { _ = w.Stop() }()
	all := map[string]map[string]any{}
	for e := range w.Updates() {
		if e == nil {
			return all
		}
		var v map[string]any
		if json.Unmarshal(e.Value(), &v) == nil && v != nil {
			if strings.HasPrefix(e.Key(), "work.") {
				// a different place alone is no difference
				delete(v, "seq")
			}
			all[e.Key()] = v
		}
	}
	return all
}

// busy creates sessions in every state that a plain client can reach.
func (c *cell) busy(inc string) {
	c.t.Helper()
	call := fact{"tool.started", "c", `{"call":"c","turn":"t1","name":"ask"}`}
	c.begin("a", inc, call, prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`),
		prompt("q", `,"turn":"t1","delivery":"callback","deadline":"2030-01-01T00:00:00+02:00"`))
	c.begin("b", inc, call, prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`))
	c.mustAppend("b", inc, 1, fact{"session.released", "b", `{}`})
	c.begin("c", inc, prompt("p", `,"turn":"t1","delivery":"message"`),
		prompt("r", `,"turn":"t1","delivery":"message"`))
	c.mustAppend("c", inc, 1, fact{"message.accepted", "m",
		`{"message":"m","content":{"a":["<b>"]},"synthetic":false}`},
		fact{"tool.started", "c", `{"call":"c","name":"late"}`})
	c.begin("d", inc, call)
	if _, err := c.publish("d", []byte("no batch")); err != nil {
		c.t.Fatal(err)
	}
	c.mustAppend("d", inc, 3, fact{"turn.completed", "t1", `{"turn":"t1"}`}, fact{"strange.thing", "x", `{"x":1}`})
	// the last of this session: the retry service appends to it next
	c.mustAppend("d", inc, 1, fact{"turn.failed", "t1",
		`{"turn":"t1","error":{"kind":"rate_limit","text":"<slow> & \u2028"},"had_output":true}`})
	c.begin("e", inc, call)
	for _, s := range []string{"a", "b", "c", "d", "e"} {
		c.settled(s)
	}
	for verb, body := range map[string]string{
		"answer": `{"harness":"h1","session":"a","prompt":"p","by":"ada","answers":[{"question":"q",` +
			`"selected":["a"]}]}`,
		"reject": `{"harness":"h1","session":"b","prompt":"p","by":"ada","text":"do it <so>"}`,
		"stop":   `{"harness":"h1","session":"c","by":"ada","force":true}`,
		"close":  `{"harness":"h1","session":"e","by":"ada","reason":"archived"}`,
	} {
		if code, reply := c.ask("ledger."+verb, body); code != "" {
			c.t.Fatalf("%s: %s %v", verb, code, reply)
		}
	}
	for _, s := range []string{"a", "b", "c", "d", "e"} {
		c.fresh(s)
		c.settled(s)
	}
}

// Documents and views are a cache of the log (V13): after a loss or damage they are rebuilt unchanged.
func TestRebuildFromTheLogAlone(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.busy(inc)
	c.entry("work.h1.b", func(d map[string]any) bool { return at(d, "turn") != nil })
	before := c.all()
	if _, err := c.nc.Request("$JS.API.STREAM.PURGE.KV_hf_state", nil, patience); err != nil {
		t.Fatal(err)
	}
	if _, err := c.state.Put(t.Context(), "session.h1.b",
		[]byte(`{"v":1,"harness":"h1","session":"b","epoch":9,"seq":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.state.Put(t.Context(), "session.h1.absent",
		[]byte(`{"v":1,"harness":"h1","session":"absent","epoch":9,"seq":1}`)); err != nil {
		t.Fatal(err)
	}
	// one document is ahead of the log: it may be the last copy
	code, reply := c.ask("ledger.rebuild", `{}`)
	if code != "" || reply["failed"] != nil || reply["lost"] != 1.0 || reply["removed"] != 0.0 {
		t.Fatalf("rebuild: %s %v", code, reply)
	}
	code, reply = c.ask("ledger.rebuild", `{"accept_loss":true}`)
	if code != "" || reply["failed"] != nil || reply["lost"] != 0.0 || reply["removed"] != 1.0 {
		t.Fatalf("rebuild that accepts the loss: %s %v", code, reply)
	}
	after := c.all()
	for k, v := range before {
		if !reflect.DeepEqual(v, after[k]) {
			t.Errorf("%s\nwas %v\nis  %v", k, v, after[k])
		}
	}
	for k := range after {
		if before[k] == nil {
			t.Errorf("%s: where does it come from?", k)
		}
	}
	c.mustAppend("a", inc, 1, fact{"tool.completed", "c", `{"call":"c"}`})
	if d := c.settled("a"); ending(d, "tool", "c") == nil {
		t.Errorf("the turn continues: %v", d)
	}
}

// Each service may run more than once; when one process ends, the others take over (R9).
func TestReplicasTakeOver(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	for round := range 3 {
		name := []string{"ledger", "reconciler", "ledger"}[round]
		p := program.Run(t, binary, nil, name, "--nats", c.nc.ConnectedUrl(), "--http", "127.0.0.1:0",
			"--log-level", "error")
		id := fmt.Sprint("p", round)
		c.mustAppend("s1", inc, 1, prompt(id, `,"turn":"t1","delivery":"message"`))
		c.entry("blocker.h1.s1.s1."+id, func(map[string]any) bool { return true })
		code, reply := c.answer("s1", id)
		if code != "" {
			t.Errorf("answer: %s %v", code, reply)
		}
		if round == 2 {
			p.Kill()
		} else if err := p.Terminate(t.Context()); err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
		c.entry("blocker.h1.s1.s1."+id, func(d map[string]any) bool { return d["status"] == "answered" })
		c.fresh("s1")
	}
}
