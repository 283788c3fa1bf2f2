package wire

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// known returns the ledger's answer about a closed session, whose document may be purged at once.
func (c *cell) known(session string) map[string]any {
	c.t.Helper()
	last := c.seq[session]
	d := c.fresh(session)
	if c.seq[session] < last {
		c.t.Fatalf("%s: the ledger knows it up to %d, %d was said", session, c.seq[session], last)
	}
	return d
}

// leave deletes a lease, as a process does at a clean end.
func (c *cell) leave(inc string) {
	c.t.Helper()
	if err := c.leases.Delete(c.t.Context(), "harness.h1."+inc); err != nil {
		c.t.Fatal(err)
	}
}

// becomes changes the state of a lease.
func (c *cell) becomes(inc, state string, ttl time.Duration) {
	c.t.Helper()
	e, err := c.leases.Get(c.t.Context(), "harness.h1."+inc)
	if err != nil {
		c.t.Fatal(err)
	}
	value := fmt.Sprintf(`{"id":"h1","incarnation":%q,"exclusive":true,"state":%q,"ttl_ms":%d}`, inc, state,
		ttl.Milliseconds())
	if _, err := c.js.Publish(c.t.Context(), "$KV.hf_leases.harness.h1."+inc, []byte(value), jetstream.WithMsgTTL(ttl),
		jetstream.WithExpectLastSequencePerSubject(e.Revision())); err != nil {
		c.t.Fatal(err)
	}
}

func ending(doc map[string]any, entity, id string) map[string]any {
	all, _ := doc["recent"].([]any)
	for _, e := range all {
		if m := e.(map[string]any); m["entity"] == entity && m["id"] == id {
			return m
		}
	}
	return nil
}

func has(id string) func(map[string]any) bool {
	return func(d map[string]any) bool { return ending(d, "turn", id) != nil }
}

// A newer incarnation adopts what it starts again; the rest is closed once the incarnation is ready; a late result is
// recorded (R5, R7).
func TestANewerIncarnationAdoptsOrInterrupts(t *testing.T) {
	c := up(t, "--adoption-grace", "15s")
	old := c.lease("ready", lasting)
	c.begin("s1", old, fact{"tool.started", "c1", `{"call":"c1","turn":"t1","name":"bash"}`},
		prompt("p1", `,"turn":"t1","delivery":"callback"`), prompt("p2", `,"turn":"t1","delivery":"callback"`))
	c.beginBy("s2", old, `{"resume":"hold"}`, fact{"tool.started", "c1", `{"call":"c1","turn":"t1","name":"bash"}`})
	armed := at(c.settled("s1"), "prompts", "p1", "since")
	inc := c.lease("starting", lasting)
	c.mustAppend("s1", inc, 2, fact{"session.claimed", "s1", `{"incarnation":"` + inc + `"}`},
		prompt("p1", `,"turn":"t1","delivery":"callback"`))
	d := c.settled("s1")
	if d["epoch"] != 2.0 || d["incarnation"] != inc || at(d, "prompts", "p1", "epoch") != 2.0 ||
		at(d, "prompts", "p1", "since") != armed || at(d, "turn", "epoch") != 2.0 ||
		at(d, "prompts", "p2", "epoch") != 1.0 {
		t.Errorf("adopted: %v", d)
	}
	c.becomes(inc, "ready", lasting)
	began, pulse := time.Now(), natstest.Feel(t)
	d = c.entry("session.h1.s2", has("t1"))
	if took := time.Since(began); took > soon(pulse) {
		t.Errorf("closed %s after ready", took)
	}
	if d["owned"] != false || d["phase"] != "interrupted" || d["superseded_by"] != inc ||
		at(d, "last_turn", "outcome") != "interrupted" || at(d, "last_turn", "reason") != "owner-lost" ||
		ending(d, "tool", "c1")["outcome"] != "interrupted" || ending(d, "tool", "c1")["late"] != nil {
		t.Errorf("not adopted: %v", d)
	}
	d = c.entry("session.h1.s1", func(d map[string]any) bool { return at(d, "tools", "c1") == nil })
	if d["owned"] != true || d["phase"] != "waiting" || at(d, "prompts", "p1", "status") != "awaiting" ||
		at(d, "turn", "id") != "t1" || ending(d, "prompt", "p2")["reason"] != "owner-lost" {
		t.Errorf("half adopted: %v", d)
	}
	c.fresh("s2")
	// it uses the right guard, and is ignored all the same
	c.mustAppend("s2", old, 1, fact{"tool.completed", "c1", `{"call":"c1"}`})
	d = c.settled("s2")
	late, _ := ending(d, "tool", "c1")["late"].(map[string]any)
	if late["seq"] != d["seq"] || late["at"] == nil || ending(d, "tool", "c1")["outcome"] != "interrupted" ||
		at(d, "ignored", "count") != 1.0 {
		t.Errorf("late: %v", d)
	}
	c.mustAppend("s2", old, 2, fact{"session.claimed", "s2", `{"incarnation":"` + old + `"}`})
	if d = c.settled("s2"); d["epoch"] != 1.0 || d["owned"] != false {
		t.Errorf("claimed by a superseded incarnation: %v", d)
	}
	c.mustAppend("s2", inc, 2, fact{"session.claimed", "s2", `{"incarnation":"` + inc + `"}`})
	if d = c.settled("s2"); d["epoch"] != 2.0 || d["owned"] != true || d["phase"] != "interrupted" {
		t.Errorf("claimed: %v", d)
	}
}

// A clean end recovers at once, with reason shutdown, and names no person (R16).
func TestACleanEndIsAShutdown(t *testing.T) {
	c := up(t, "--grace", "15s")
	inc := c.lease("ready", lasting)
	c.begin("s1", inc, prompt("p1", `,"turn":"t1","delivery":"callback"`),
		prompt("p2", `,"turn":"t1","delivery":"message"`))
	c.mustAppend("s1", inc, 1, fact{"session.released", "s1", `{"reason":"bye"}`})
	c.leave(inc)
	began, pulse := time.Now(), natstest.Feel(t)
	v := c.entry("blocker.h1.s1.s1.p1", func(d map[string]any) bool { return d["status"] != "awaiting" })
	if v["status"] != "withdrawn" || v["reason"] != "shutdown" || time.Since(began) > time.Second+soon(pulse) {
		t.Errorf("after %s: %v", time.Since(began), v)
	}
	v = c.entry("blocker.h1.s1.s1.p2", func(d map[string]any) bool { return d["owned"] == false })
	if v["status"] != "awaiting" {
		t.Errorf("kept: %v", v)
	}
	// in a session of a dead process
	c.begin("s2", inc, fact{"tool.started", "c1", `{"call":"c1","turn":"t1","name":"bash"}`})
	d := c.entry("session.h1.s2", has("t1"))
	if d["owned"] != false || at(d, "last_turn", "outcome") != "interrupted" {
		t.Errorf("a session without a lease: %v", d)
	}
}

// The reconciler carries out a stop of a session without an owner (R18), over a prompt only with force.
func TestStopOfASessionWithoutAnOwner(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc, fact{"tool.started", "c", `{"call":"c","turn":"t1","name":"ask"}`},
		prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`))
	c.mustAppend("s1", inc, 1, fact{"session.released", "s1", `{}`})
	c.settled("s1")
	code, reply := c.ask("ledger.stop", `{"harness":"h1","session":"s1","by":"ada"}`)
	if code != "409" || reply["prompt"] != "p" {
		t.Errorf("stop: %s %v", code, reply)
	}
	if code, reply = c.ask("ledger.stop",
		`{"harness":"h1","session":"s1","by":"ada","reason":"enough","force":true}`); code != "" {
		t.Errorf("forced: %s %v", code, reply)
	}
	d := c.entry("session.h1.s1", has("t1"))
	if at(d, "last_turn", "outcome") != "stopped" || d["phase"] != "idle" ||
		ending(d, "prompt", "p")["outcome"] != "withdrawn" || len(kindsOpen(d)) > 0 {
		t.Errorf("stopped: %v", d)
	}
	c.gone("work.h1.s1")
}

func kindsOpen(d map[string]any) (open []string) {
	for _, k := range []string{"tools", "prompts", "turn", "pending"} {
		if m, ok := d[k].(map[string]any); ok && len(m) > 0 {
			open = append(open, k)
		}
	}
	return open
}

// A call that waits for a child which waits for a person is held; the child's settlement closes the call, and the
// parent continues once (P16).
func TestAParentWaitsForItsChild(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--grace", "500ms")
	inc := c.lease("ready", dying)
	c.begin("root", inc, fact{"tool.started", "task", `{"call":"task","turn":"t1","name":"task"}`})
	c.mustAppend("kid", inc, 1, fact{"session.opened", "kid",
		`{"incarnation":"` + inc + `","parent":"root","parent_call":"task","root":"root"}`},
		fact{"turn.started", "k1", `{"turn":"k1","cause":"message","synthetic":true}`},
		fact{"tool.started", "ask", `{"call":"ask","turn":"k1","name":"ask"}`},
		prompt("p", `,"turn":"k1","call":"ask","delivery":"tool-result"`))
	v := c.entry("blocker.h1.root.kid.p", func(d map[string]any) bool { return d["status"] == "awaiting" })
	if v["root"] != "root" || v["session"] != "kid" {
		t.Errorf("the root's view: %v", v)
	}
	d := c.entry("session.h1.root", func(d map[string]any) bool { return d["waits_for"] != nil })
	waits := d["waits_for"].([]any)[0].(map[string]any)
	if d["owned"] != false || d["phase"] != "waiting" || at(d, "turn", "id") != "t1" || waits["call"] != "task" ||
		waits["child"] != "kid" || at(d, "tools", "task") == nil {
		t.Errorf("held: %v", d)
	}
	next := c.lease("ready", lasting)
	code, reply := c.answer("kid", "p")
	if code != "" || kinds(c.changes(reply["seq"])) != "holdfast.prompt.answered holdfast.tool.completed "+
		"holdfast.turn.requested " {
		t.Fatalf("answer: %s %v", code, reply)
	}
	w := c.entry("work.h1.kid", func(d map[string]any) bool { return at(d, "turn", "cause") == "answer" })
	turn := at(w, "turn", "turn").(string)
	c.fresh("kid")
	c.mustAppend("kid", next, 2, fact{"session.claimed", "kid", `{"incarnation":"` + next + `"}`},
		fact{"turn.started", turn, `{"turn":"` + turn + `","cause":"answer","synthetic":true,"of_turn":"k1"}`})
	if d = c.settled("kid"); at(d, "last_turn", "outcome") != "continued" || d["phase"] != "running" {
		t.Errorf("the child continues: %v", d)
	}
	c.mustAppend("kid", next, 2, fact{"turn.completed", turn, `{"turn":"` + turn + `"}`})
	w = c.entry("work.h1.root", func(d map[string]any) bool { return at(d, "turn") != nil })
	d = c.fresh("root")
	if ending(d, "tool", "task")["outcome"] != "completed" || at(w, "turn", "of_turn") != "t1" ||
		d["waits_for"] != nil {
		t.Errorf("the parent continues: %v %v", w, d)
	}
}

// A closed session is purged but for its last commit, and its id cannot be opened again.
func TestAClosedSessionLeavesATombstone(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--closed-sessions-kept-for", "1s")
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	c.settled("s1")
	code, reply := c.ask("ledger.close", `{"harness":"h1","session":"s1","by":"ada","reason":"deleted"}`)
	if code != "" {
		t.Fatalf("close: %s %v", code, reply)
	}
	c.seq["s1"] = uint64(reply["seq"].(float64))
	if d := c.known("s1"); d["phase"] != "closed" || at(d, "last_turn", "outcome") != "stopped" || d["owned"] != false {
		t.Errorf("closed: %v", d)
	}
	c.gone("session.h1.s1")
	log, err := c.js.Stream(t.Context(), "HF_LOG")
	if err != nil {
		t.Fatal(err)
	}
	info, err := log.Info(t.Context(), jetstream.WithSubjectFilter("hf.log.h1.s1.*"))
	if err != nil {
		t.Fatal(err)
	}
	if info.State.Msgs != 1 || info.State.LastSeq != c.seq["s1"] {
		t.Errorf("left in the log: %d, last %d, closed at %d", info.State.Msgs, info.State.LastSeq, c.seq["s1"])
	}
	code, reply = c.ask("ledger.stop", `{"harness":"h1","session":"s1","by":"ada"}`)
	if code != "409" || reply["status"] != "closed" {
		t.Errorf("stop: %s %v", code, reply)
	}
	n := c.seq["s1"]
	c.seq["s1"] = 0
	if _, err := c.append("s1", inc, 1, fact{"session.opened", "s1", `{"incarnation":"` + inc + `"}`}); err == nil {
		t.Error("opened again over the tombstone")
	}
	c.seq["s1"] = n
	c.mustAppend("s1", inc, 1, fact{"session.opened", "s1", `{"incarnation":"` + inc + `"}`},
		fact{"turn.started", "t1", `{"turn":"t1","cause":"message","synthetic":false}`})
	if d := c.known("s1"); d["phase"] != "closed" || d["owned"] != false || d["turn"] != nil {
		t.Errorf("opened again: %v", d)
	}
}

// An unguarded write behind the end of a closed session does not reopen it.
func TestATombstoneIsOneAlsoAfterUnguardedWrites(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--closed-sessions-kept-for", "1s")
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	c.mustAppend("s1", inc, 1, fact{"session.closed", "s1", `{"reason":"finished"}`})
	c.send("hf.log.h1.s1.harness", `[`+event(inc, nil)+`]`, -1)
	c.gone("session.h1.s1")
	url := c.nc.ConnectedAddr()
	c.nc.Close()
	c.stop()
	c.start(url)
	code, reply := c.ask("ledger.get", `{"harness":"h1","session":"s1"}`)
	if code != "" || at(reply, "document", "phase") != "closed" {
		t.Fatalf("get: %s %v", code, reply)
	}
	c.seq["s1"] = uint64(at(reply, "document", "seq").(float64))
	c.begin("s1", inc)
	if d := c.known("s1"); d["phase"] != "closed" || d["turn"] != nil {
		t.Errorf("opened again: %v", d)
	}
}

func TestListInPages(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	for i := range 7 {
		s := "s" + strconv.Itoa(i)
		if i%2 == 0 {
			c.begin(s, inc)
		} else {
			c.begin(s, inc, prompt("p", `,"turn":"t1","delivery":"message"`))
		}
		c.settled(s)
	}
	seen, after := map[string]int{}, ""
	for range 4 {
		code, reply := c.ask("ledger.list", fmt.Sprintf(`{"harness":"h1","limit":2,"after":%q}`, after))
		docs, _ := reply["documents"].([]any)
		if code != "" || len(docs) == 0 || len(docs) > 2 {
			t.Fatalf("page after %q: %s %v", after, code, reply)
		}
		for _, d := range docs {
			seen[d.(map[string]any)["session"].(string)]++
		}
		next, more := reply["next"].(string)
		if after = next; !more {
			break
		}
	}
	if len(seen) != 7 || after != "" {
		t.Errorf("seen %v, then %q", seen, after)
	}
	for body, want := range map[string]int{`{"phase":"waiting"}`: 3, `{"waiting":true}`: 3,
		`{"phase":"running","harness":"h1"}`: 4, `{"root":"s1"}`: 1, `{"harness":"h2"}`: 0, ``: 7} {
		code, reply := c.ask("ledger.list", body)
		docs, ok := reply["documents"].([]any)
		if code != "" || !ok || len(docs) != want {
			t.Errorf("%s: %s, %d documents, want %d: %v", body, code, len(docs), want, reply)
		}
	}
}

func keyTTL(ttl time.Duration) jetstream.KVCreateOpt { return jetstream.KeyTTL(ttl) }
