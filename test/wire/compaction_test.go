package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// full returns a session whose last turn completed and reported this many tokens of 100,000.
func (c *cell) full(session, inc, policy string, used int) {
	c.t.Helper()
	// no service sees the turn open, and stops it
	c.mustAppend(session, inc, 1, fact{"session.opened", session,
		`{"incarnation":"` + inc + `","context_limit":100000,"policy":` + policy + `}`},
		fact{"turn.started", "t1", `{"turn":"t1","cause":"message","synthetic":false,"options":{"model":"x"}}`},
		usage("t1", used), fact{"turn.completed", "t1", `{"turn":"t1"}`})
}

func usage(turn string, used int) fact {
	return fact{"usage.reported", turn,
		fmt.Sprintf(`{"turn":%q,"model":"m","tokens":{"input":%d,"cache_read":0,"cache_write":0,"output":90000,`+
			`"reasoning":90000}}`, turn, used)}
}

// compaction takes the requested compaction of a session, and returns its id.
func (c *cell) compaction(session, inc string, epoch int) string {
	c.t.Helper()
	w := c.work(session, func(d map[string]any) bool { return d["compaction"] != nil })
	id := at(w, "compaction", "compaction").(string)
	if w["turn"] != nil {
		c.t.Errorf("a turn beside a compaction: %v", w)
	}
	c.fresh(session)
	c.mustAppend(session, inc, epoch, fact{"compaction.started", id, `{"compaction":"` + id + `"}`})
	return id
}

func (c *cell) compacted(session, inc string, epoch int, id string, usedAfter int) {
	c.t.Helper()
	c.fresh(session)
	c.mustAppend(session, inc, epoch,
		fact{"compaction.completed", id, fmt.Sprintf(`{"compaction":%q,"used_after":%d}`, id, usedAfter)})
}

func (c *cell) compactionFails(session, inc string, id, kind string) {
	c.t.Helper()
	c.fresh(session)
	c.mustAppend(session, inc, 1, fact{"compaction.failed", id,
		`{"compaction":"` + id + `","error":{"kind":"` + kind + `","text":"no"}}`})
}

// At the threshold the conversation is compacted before the message is handed out; below it, or without usage reports,
// it is not (C2 to C4).
func TestOnSend(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	for s, x := range map[string]struct {
		policy string
		used   int
		want   bool
	}{
		"below": {`{}`, 69_999, false}, "at": {`{}`, 70_000, true},
		"off": {`{"compaction_threshold":1.0}`, 99_000, false}, "half": {`{"compaction_threshold":0.5}`, 50_000, true},
		"limit-by-policy": {`{"context_limit":50000}`, 35_000, true},
		"larger-limit":    {`{"context_limit":200000}`, 99_000, false},
		"auto-retry-off":  {`{"auto_retry":false}`, 70_000, true},
	} {
		c.full(s, inc, x.policy, x.used)
		code, reply := c.sends(s, "m1", `,"content":"hello"`)
		if code != "" {
			t.Fatalf("%s: %s %v", s, code, reply)
		}
		d, batch := c.fresh(s), c.changes(reply["seq"])
		if !x.want {
			if got := kinds(batch); got != "holdfast.message.accepted holdfast.turn.requested " {
				t.Errorf("%s: said %s", s, got)
			}
			continue
		}
		if got := kinds(batch); got != "holdfast.message.accepted holdfast.compaction.requested " ||
			d["phase"] != "compacting" || queue(d) != "m1" || at(d, "compaction", "state") != "requested" ||
			at(d, "compaction", "follow_up") != "message" || at(d, "compaction", "message") != "m1" ||
			at(d, "compaction", "reason") != "on-send" {
			t.Errorf("%s: said %s: %v", s, got, d)
		}
		c.sends(s, "m2", `,"content":"and then"`)
		id := c.compaction(s, inc, 1)
		if d = c.settled(s); at(d, "compaction", "state") != "running" || at(d, "pending", "turn") != nil {
			t.Errorf("%s: started: %v", s, d)
		}
		c.compacted(s, inc, 1, id, 1_000)
		w := c.work(s, func(d map[string]any) bool { return d["turn"] != nil })
		if at(w, "turn", "cause") != "follow-up" || at(w, "turn", "message") != "m1" ||
			at(w, "turn", "content") != "hello" || at(w, "turn", "compaction") != id {
			t.Errorf("%s: follows: %v", s, w)
		}
		c.completes(s, inc, 1, c.take(s, inc, 1))
		c.work(s, func(d map[string]any) bool { return at(d, "turn", "message") == "m2" })
		d = c.fresh(s)
		if n := strings.Count(fmt.Sprint(d["recent"]), "entity:compaction"); n != 1 ||
			at(d, "last_compaction", "outcome") != "completed" ||
			at(d, "last_compaction", "used_before") != float64(x.used) ||
			at(d, "last_compaction", "used_after") != 1000.0 || d["compaction"] != nil {
			t.Errorf("%s: afterwards: %v", s, d)
		}
	}
}

// A turn that fills the context is stopped in one commit with the compaction, and continues as the same request, once
// (C5).
func TestMidStream(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.mustAppend("s1", inc, 1, fact{"session.opened", "s1", `{"incarnation":"` + inc + `","context_limit":100000}`},
		fact{"turn.started", "t1", `{"turn":"t1","cause":"message","synthetic":false,"options":{"model":"x"}}`},
		usage("t1", 74_999))
	c.sends("s1", "m1", `,"content":"later"`)
	c.fresh("s1")
	c.mustAppend("s1", inc, 1, usage("t1", 75_000))
	d := c.entry("session.h1.s1", func(d map[string]any) bool { return at(d, "pending", "compaction") != nil })
	if got := kinds(c.changes(at(d, "pending", "compaction",
		"seq"))); got != "holdfast.turn.stop_requested holdfast.compaction.requested " || at(d, "pending", "stop",
		"actor") != "compaction" ||
		at(d, "compaction", "reason") != "mid-stream" || at(d, "compaction", "follow_up") != "continue" {
		t.Errorf("said %s: %v", got, d)
	}
	w := c.work("s1", func(d map[string]any) bool { return d["stop"] != nil })
	if at(w, "stop", "turn") != "t1" || at(w, "stop", "actor") != "compaction" ||
		at(w, "compaction", "reason") != "mid-stream" {
		t.Errorf("work: %v", w)
	}
	c.fresh("s1")
	c.mustAppend("s1", inc, 1, fact{"turn.stopped", "t1", `{"turn":"t1","actor":"compaction"}`})
	id := c.compaction("s1", inc, 1)
	c.compacted("s1", inc, 1, id, 10_000)
	w = c.work("s1", func(d map[string]any) bool { return d["turn"] != nil })
	if at(w, "turn", "cause") != "follow-up" || at(w, "turn", "of_turn") != "t1" ||
		at(w, "turn", "options", "model") != "x" || at(w, "turn", "compaction") != id {
		t.Errorf("the turn continues: %v", w)
	}
	turn := c.take("s1", inc, 1)
	c.completes("s1", inc, 1, turn)
	// the queue follows it
	c.work("s1", func(d map[string]any) bool { return at(d, "turn", "message") == "m1" })
	if d = c.fresh("s1"); d["usage"] != nil || at(d, "retry", "state") != nil ||
		strings.Count(fmt.Sprint(d["recent"]), "entity:compaction") != 1 {
		t.Errorf("afterwards: %v", d)
	}
}

// Work that a person stops during a compaction does not start without a person when the compaction ends (R15): neither
// the turn that was stopped for the compaction, nor a message.
func TestAStopWhileItIsCompacted(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.mustAppend("turn", inc, 1, fact{"session.opened", "turn", `{"incarnation":"` + inc + `","context_limit":100000}`},
		fact{"turn.started", "t1", `{"turn":"t1","cause":"message","synthetic":false}`}, usage("t1", 75_000))
	c.work("turn", func(d map[string]any) bool { return d["stop"] != nil })
	c.fresh("turn")
	c.mustAppend("turn", inc, 1, fact{"turn.stopped", "t1", `{"turn":"t1","actor":"compaction"}`})
	c.full("message", inc, `{}`, 80_000)
	c.sends("message", "m1", `,"content":"x"`)
	for _, s := range []string{"turn", "message"} {
		id := c.compaction(s, inc, 1)
		before := c.fresh(s)["seq"].(float64)
		code, reply := c.ask("ledger.stop", session(s))
		if seq, _ := reply["seq"].(float64); code != "" || seq <= before {
			t.Fatalf("%s: stop: %s %v, the log was at %v", s, code, reply, before)
		}
		w := c.work(s, func(d map[string]any) bool { return at(d, "stop", "actor") == "person" })
		c.fresh(s)
		c.mustAppend(s, inc, 1, fact{"turn.stopped", at(w, "stop", "turn").(string), `{"turn":"t1","actor":"person"}`})
		c.compacted(s, inc, 1, id, 1_000)
	}
	// compaction has looked by then
	code, reply := c.sends("message", "m2", `,"content":"go on"`)
	if d := c.fresh("message"); code != "" || queue(d) != "m1 m2" || at(d, "pending", "turn", "message") != "m1" ||
		d["commits"] != 7.0 {
		t.Errorf("a person speaks: %s %v %v", code, reply, d)
	}
	c.sends("turn", "m1", `,"content":"else"`)
	if d := c.fresh("turn"); at(d, "pending", "turn", "message") != "m1" ||
		at(d, "pending", "turn", "of_turn") != nil || d["commits"] != 8.0 {
		t.Errorf("the turn went on: %v", d)
	}
}

// A conversation that is too long for the model is compacted once, and the same turn is tried again; if it fails again,
// the end has the reason (C11).
func TestOverflow(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.mustAppend("s1", inc, 1, fact{"session.opened", "s1", `{"incarnation":"` + inc + `","context_limit":100000}`},
		fact{"message.accepted", "m1", `{"message":"m1","content":"hello","synthetic":false}`},
		fact{"turn.started", "t1",
			`{"turn":"t1","cause":"message","synthetic":false,"message":"m1","options":{"model":"x"}}`})
	c.fails("s1", inc, 1, "t1", "context_exceeded", "")
	id := c.compaction("s1", inc, 1)
	if d := c.settled("s1"); d["phase"] != "compacting" || at(d, "retry", "state") != nil {
		t.Errorf("overflowed: %v", d)
	}
	c.compacted("s1", inc, 1, id, 10_000)
	w := c.work("s1", func(d map[string]any) bool { return d["turn"] != nil })
	if at(w, "turn", "of_turn") != "t1" || at(w, "turn", "options", "model") != "x" ||
		at(w, "turn", "message") != "m1" {
		t.Errorf("again: %v", w)
	}
	turn := c.take("s1", inc, 1)
	c.fails("s1", inc, 1, turn, "context_exceeded", "")
	d := c.retry("s1", "abandoned")
	if at(d, "retry", "reason") != "context_exceeded" || at(d, "pending", "compaction") != nil ||
		at(d, "pending", "turn") != nil || strings.Count(fmt.Sprint(d["recent"]), "entity:compaction") != 1 {
		t.Errorf("the end: %v", d)
	}
}

// After a compaction that failed for good, the work continues without it if it fits, else it is held, and the document
// has the reason (C8).
func TestACompactionFails(t *testing.T) {
	c := up(t)
	inc := c.lease("ready", lasting)
	for s, used := range map[string]int{"fits": 80_000, "full": 100_000} {
		c.full(s, inc, `{}`, used)
		c.sends(s, "m1", `,"content":"x"`)
		c.compactionFails(s, inc, c.compaction(s, inc, 1), "authentication")
	}
	w := c.work("fits", func(d map[string]any) bool { return d["turn"] != nil })
	if at(w, "turn", "message") != "m1" || at(w, "turn", "cause") != "follow-up" {
		t.Errorf("fits: %v", w)
	}
	d := c.entry("session.h1.full", func(d map[string]any) bool { return at(d, "compaction", "state") == "held" })
	if at(d, "compaction", "error", "kind") != "authentication" || queue(d) != "m1" ||
		at(d, "pending", "turn") != nil || at(d, "last_compaction", "failures") != 1.0 || d["phase"] != "queued" {
		t.Errorf("held: %v", d)
	}
	c.full("again", inc, `{}`, 80_000)
	c.sends("again", "m1", `,"content":"x"`)
	first := c.compaction("again", inc, 1)
	c.compactionFails("again", inc, first, "server_error")
	pulse := natstest.Feel(t)
	failed := instant(t, at(c.settled("again"), "last_compaction", "at"))
	d = c.entry("session.h1.again", func(d map[string]any) bool { return at(d, "pending", "compaction") != nil })
	if after := instant(t, at(d, "compaction", "since")).Sub(failed); after < 2*time.Second ||
		after > 2*time.Second+soon(pulse) || at(d, "compaction", "id") == first ||
		at(d, "compaction", "message") != "m1" || queue(d) != "m1" {
		t.Errorf("tried again after %s: %v", after, d)
	}
}

// A compaction that did not help is not requested again; the document says stalled (C9).
func TestACompactionOfNoUse(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.full("s1", inc, `{}`, 80_000)
	c.sends("s1", "m1", `,"content":"x"`)
	c.compacted("s1", inc, 1, c.compaction("s1", inc, 1), 0)
	turn := c.take("s1", inc, 1)
	c.mustAppend("s1", inc, 1, usage(turn, 79_000))
	c.completes("s1", inc, 1, turn)
	code, reply := c.sends("s1", "m2", `,"content":"x"`)
	d := c.fresh("s1")
	if code != "" || at(d, "compaction", "state") != "stalled" || at(d, "compaction", "error") == nil ||
		at(d, "pending", "turn", "message") != "m2" || d["phase"] != "queued" {
		t.Errorf("no progress: %s %v %v", code, reply, d)
	}
	if _, reply := c.ask("compaction.check", session("s1")); reply["would"] != false {
		t.Errorf("check: %v", reply)
	}
}

// People may compact at any usage and while compaction is off, over a prompt only with force (C12, C16).
func TestCompactByHand(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.full("s1", inc, `{"compaction_threshold":1.0}`, 10)
	code, first := c.ask("compaction.compact", session("s1"))
	d := c.fresh("s1")
	if code != "" || first["seq"] == nil || at(d, "compaction", "reason") != "manual" || d["phase"] != "compacting" {
		t.Fatalf("compact: %s %v %v", code, first, d)
	}
	if code, again := c.ask("compaction.compact", session("s1")); code != "" || again["seq"] != first["seq"] {
		t.Errorf("again: %s %v", code, again)
	}
	c.compacted("s1", inc, 1, c.compaction("s1", inc, 1), 5)
	if d = c.settled("s1"); d["phase"] != "idle" || d["usage"] != nil || d["compaction"] != nil {
		t.Errorf("compacted: %v", d)
	}
	c.begin("asks", inc, prompt("p", `,"turn":"t1","delivery":"message"`))
	code, reply := c.ask("compaction.compact", session("asks"))
	if code != "409" || reply["status"] != "waiting" || reply["reason"] == nil || reply["seq"] == nil {
		t.Errorf("over a question: %s %v", code, reply)
	}
	code, reply = c.ask("compaction.compact", `{"harness":"h1","session":"asks","by":"ada","force":true}`)
	if d := c.fresh("asks"); code != "" || at(d, "prompts", "p", "status") != "superseded" ||
		at(d, "compaction", "reason") != "manual" {
		t.Errorf("with force: %s %v %v", code, reply, d)
	}
	c.begin("closed", inc, fact{"session.closed", "closed", `{"reason":"finished"}`})
	for _, x := range []struct{ body, code, field, want string }{
		{session("absent"), "404", "what", "session"}, {session("closed"), "409", "status", "closed"},
		{`{"harness":"h1","session":"s1"}`, "400", "field", "by"},
		{`{"harness":"h1","session":"s1","by":"ada","force":"yes"}`, "400", "field", "force"},
		{`{"harness":"h1","by":"ada"}`, "400", "field", "session"},
	} {
		if code, reply := c.ask("compaction.compact", x.body); code != x.code ||
			!strings.Contains(fmt.Sprint(reply[x.field]), x.want) {
			t.Errorf("%s: %s %v, want %s %s", x.body, code, reply, x.code, x.want)
		}
	}
}

// TestCheck: check returns what a compaction would do, and changes nothing (C13).
func TestCheck(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.full("s1", inc, `{}`, 10_000)
	before := c.settled("s1")["seq"]
	body := func(s, more string) string { return fmt.Sprintf(`{"harness":"h1","session":%q%s}`, s, more) }
	for _, x := range []struct {
		more   string
		would  bool
		reason string
	}{
		{``, false, "disabled"}, {`,"used":70000`, true, ""}, {`,"used":69999`, false, ""},
		{`,"limit":14285`, true, ""}, {`,"used":0`, false, ""}, {`,"limit":0`, false, ""},
		{`,"used":1000000000000,"limit":1`, true, ""},
	} {
		code, reply := c.ask("compaction.check", body("s1", x.more))
		if code != "" || reply["would"] != x.would || reply["reason"] == nil ||
			x.reason != "" && reply["reason"] != x.reason {
			t.Errorf("check %s: %s %v, want %v %s", x.more, code, reply, x.would, x.reason)
		}
	}
	for body, want := range map[string]string{body("absent", ""): "404", body("s1", `,"used":-1`): "400",
		body("s1", `,"limit":-1`): "400", body("s1", `,"used":"much"`): "400", `{"harness":"h1"}`: "400"} {
		if code, reply := c.ask("compaction.check", body); code != want {
			t.Errorf("check %s: %s %v, want %s", body, code, reply, want)
		}
	}
	if d := c.fresh("s1"); d["seq"] != before {
		t.Errorf("check said something: %v, was %v", d["seq"], before)
	}
	for s, policy := range map[string]string{"not_idle_long_enough": `{"idle_compaction_after_s":600}`,
		"running": `{"idle_compaction_after_s":1}`, "no_usage": `{"idle_compaction_after_s":1}`} {
		c.mustAppend(s, inc, 1, fact{"session.opened", s,
			`{"incarnation":"` + inc + `","context_limit":100000,"policy":` + policy + `}`},
			fact{"turn.started", "t1", `{"turn":"t1","cause":"message","synthetic":false}`})
		if s != "no_usage" {
			c.mustAppend(s, inc, 1, usage("t1", 5_000))
		}
		if s != "running" {
			c.completes(s, inc, 1, "t1")
		}
		c.settled(s)
		if code, reply := c.ask("compaction.check", body(s, "")); code != "" || reply["would"] != false ||
			reply["reason"] != s {
			t.Errorf("check: %s %v, want %s", code, reply, s)
		}
	}
}

// An idle session is compacted, once, without a person as the asker (C13, C15).
func TestIdle(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.full("s1", inc, `{"idle_compaction_after_s":1}`, 5_000)
	ended := c.settled("s1")
	id := c.compaction("s1", inc, 1)
	d := c.settled("s1")
	if idle := instant(t, at(d, "compaction", "since")).Sub(instant(t, at(ended, "last_turn", "at"))); at(d,
		"compaction", "reason") != "idle" || at(d, "compaction", "follow_up") != nil || idle < time.Second {
		t.Errorf("idle for %s: %v", idle, d)
	}
	c.compacted("s1", inc, 1, id, 400)
	c.settled("s1")
	_, reply := c.ask("compaction.check", session("s1"))
	if d = c.fresh("s1"); reply["reason"] != "already_compacted" || d["active_at"] != ended["active_at"] ||
		d["phase"] != "idle" {
		t.Errorf("afterwards: %v %v", reply, d)
	}
}

// Usage is the input of the last report; malformed reports count as nothing (C1, C2).
func TestUsageOfAllSorts(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	for s, x := range map[string]struct {
		tokens string
		want   any
	}{
		"sum": {`{"tokens":{"input":10000,"cache_read":20000,"cache_write":30000,"output":900000,` +
			`"reasoning":900000}}`, 60_000.0},
		"includes": {`{"tokens":{"input":10000,"cache_read":9000,"cache_write":500},"input_includes_cached":true}`,
			10_000.0},
		"only-cached":  {`{"tokens":{"input":0,"cache_read":9000},"input_includes_cached":true}`, 9_000.0},
		"missing":      {`{"tokens":{"output":5}}`, 0.0},
		"negative":     {`{"tokens":{"input":-1}}`, 50.0},
		"absurd":       {`{"tokens":{"input":9000000000000000000}}`, 50.0},
		"text":         {`{"tokens":{"input":"many"}}`, 50.0},
		"unknown-turn": {`{"turn":"t9","tokens":{"input":70}}`, 50.0},
	} {
		if !strings.Contains(x.tokens, `"turn"`) {
			x.tokens = `{"turn":"t1",` + x.tokens[1:]
		}
		turn := "t1"
		if s == "unknown-turn" {
			turn = "t9"
		}
		c.begin(s, inc, usage("t1", 50))
		c.mustAppend(s, inc, 1, fact{"usage.reported", turn, x.tokens})
		if d := c.settled(s); at(d, "usage", "used") != x.want || at(d, "usage", "limit") != 0.0 ||
			at(d, "usage", "warn") != false || d["phase"] != "running" {
			t.Errorf("%s: %v, want %v", s, d["usage"], x.want)
		}
	}
	c.full("limit-shrinks", inc, `{}`, 60_000)
	if code, reply := c.ask("ledger.configure",
		`{"harness":"h1","session":"limit-shrinks","policy":{"context_limit":64000},"by":"ada"}`); code != "" {
		t.Fatalf("%s %v", code, reply)
	}
	if d := c.fresh("limit-shrinks"); at(d, "usage", "limit") != 64000.0 || at(d, "usage", "percent") != 93.7 ||
		at(d, "usage", "warn") != true {
		t.Errorf("a limit that shrinks: %v", d["usage"])
	}
	for field, policy := range map[string]string{"compaction_threshold": `{"compaction_threshold":0.09}`,
		"context_limit": `{"context_limit":-1}`, "idle_compaction_after_s": `{"idle_compaction_after_s":-1}`,
		"retry_max": `{"retry_max":-1}`, "resume": `{"resume":"maybe"}`, "resume_max": `{"resume_max":-1}`,
		"stall_after_s": `{"stall_after_s":-1}`, "auto_retry": `{"auto_retry":"yes"}`} {
		code, reply := c.ask("ledger.configure", `{"harness":"h1","session":"sum","policy":`+policy+`,"by":"ada"}`)
		if code != "400" || !strings.Contains(fmt.Sprint(reply["field"]), field) {
			t.Errorf("%s: %s %v, want 400 with the field", policy, code, reply)
		}
	}
}
