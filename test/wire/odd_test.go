package wire

import (
	"fmt"
	"testing"
	"time"
)

// Facts about unknown or ended entities change nothing but the count of ignored facts.
func TestWhatIsGoneStaysGone(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	ignored := func(s string, n int, why string) map[string]any {
		t.Helper()
		d := c.settled(s)
		if at(d, "ignored", "count") != float64(n) || n > 0 && at(d, "ignored", "last", "why") != why {
			t.Errorf("%s: ignored %v, want %d, the last as %q", s, d["ignored"], n, why)
		}
		return d
	}
	c.full("compacts", inc, `{}`, 10)
	c.fresh("compacts")
	c.mustAppend("compacts", inc, 1, fact{"compaction.completed", "k9", `{"compaction":"k9"}`})
	ignored("compacts", 1, "unknown")
	code, reply := c.ask("compaction.compact", session("compacts"))
	if code != "" {
		t.Fatalf("compact: %s %v", code, reply)
	}
	id := c.compaction("compacts", inc, 1)
	c.compacted("compacts", inc, 1, id, 5)
	c.mustAppend("compacts", inc, 1, fact{"compaction.completed", id, `{"compaction":"` + id + `","used_after":9}`},
		fact{"compaction.failed", id, `{"compaction":"` + id + `","error":{"kind":"x","text":""}}`})
	if d := ignored("compacts", 3, "closed-id"); at(d, "last_compaction", "used_after") != 5.0 ||
		at(d, "last_compaction", "outcome") != "completed" {
		t.Errorf("ended twice: %v", d["last_compaction"])
	}
	c.begin("retries", inc)
	c.fails("retries", inc, 1, "t1", "server_error", `,"retry_after_ms":600000`)
	d := c.retry("retries", "scheduled")
	due := at(d, "retry", "due_at")
	c.fresh("retries")
	c.as("retry", "retries", 1,
		fact{"retry.scheduled", "t9",
			`{"turn":"t9","attempt":7,"delay_ms":1,"due_at":"2026-01-01T00:00:00Z","error":{"kind":"x","text":""}}`})
	ignored("retries", 1, "unknown")
	c.as("retry", "retries", 1, fact{"retry.abandoned", "t9", `{"turn":"t9","attempt":7,"reason":"x"}`})
	if d = ignored("retries", 2, "unknown"); at(d, "retry", "state") != "scheduled" ||
		at(d, "retry", "due_at") != due || at(d, "retry", "attempt") != 1.0 {
		t.Errorf("a retry of a turn that is gone: %v", d["retry"])
	}
	c.begin("taken-back", inc)
	c.fails("taken-back", inc, 1, "t1", "server_error", "")
	w := c.work("taken-back", func(d map[string]any) bool { return at(d, "turn", "of_turn") == "t1" })
	turn := at(w, "turn", "turn").(string)
	if code, reply := c.ask("ledger.stop", session("taken-back")); code != "" {
		t.Fatalf("stop: %s %v", code, reply)
	}
	c.fresh("taken-back")
	c.mustAppend("taken-back", inc, 1,
		fact{"turn.started", turn, `{"turn":"` + turn + `","cause":"retry","synthetic":true,"of_turn":"t1"}`})
	if d = ignored("taken-back", 1, "closed-id"); d["turn"] != nil || d["phase"] != "idle" ||
		at(d, "retry", "reason") != "stopped" {
		t.Errorf("started after it was taken back: %v", d)
	}
}

// A limit that shrinks during a turn starts a compaction in mid-stream.
func TestALimitShrinksUnderATurn(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.mustAppend("s1", inc, 1, fact{"session.opened", "s1", `{"incarnation":"` + inc + `","context_limit":100000}`},
		fact{"turn.started", "t1", `{"turn":"t1","cause":"message","synthetic":false}`}, usage("t1", 60_000))
	if code, reply := c.ask("ledger.configure",
		`{"harness":"h1","session":"s1","policy":{"context_limit":64000},"by":"ada"}`); code != "" {
		t.Fatalf("configure: %s %v", code, reply)
	}
	w := c.work("s1", func(d map[string]any) bool { return d["compaction"] != nil })
	if at(w, "stop", "actor") != "compaction" || at(w, "compaction", "reason") != "mid-stream" {
		t.Errorf("work: %v", w)
	}
}

// While a person decides, nothing is retried, compacted, or reported as stalled (P20).
func TestAPersonThinks(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.beginBy("fails", inc, `{}`, prompt("p", `,"delivery":"message"`))
	c.fails("fails", inc, 1, "t1", "server_error", "")
	c.beginBy("runs", inc, `{"stall_after_s":1}`, prompt("p", `,"turn":"t1","delivery":"message"`))
	c.beginBy("rests", inc, `{"idle_compaction_after_s":1}`, usage("t1", 90_000), prompt("p", `,"delivery":"message"`))
	c.completes("rests", inc, 1, "t1")
	c.beginBy("else", inc, `{"idle_compaction_after_s":2}`, usage("t1", 90_000))
	c.completes("else", inc, 1, "t1")
	// longer than the delays of retry and compaction
	c.work("else", func(d map[string]any) bool { return d["compaction"] != nil })
	for _, s := range []string{"fails", "runs", "rests"} {
		if d := c.fresh(s); d["phase"] != "waiting" || d["pending"] != nil && fmt.Sprint(d["pending"]) != "map[]" ||
			at(d, "retry", "state") != nil || d["compaction"] != nil {
			t.Errorf("%s: %v", s, d)
		}
	}
	if code, reply := c.ask("ledger.dismiss",
		`{"harness":"h1","session":"fails","prompt":"p","by":"ada"}`); code != "" {
		t.Fatalf("dismiss: %s %v", code, reply)
	}
	// it may be due at once
	d := c.entry("session.h1.fails", func(d map[string]any) bool { return at(d, "retry", "attempt") == 1.0 })
	if due := instant(t, at(d, "retry", "due_at")).Sub(instant(t, at(d, "last_turn", "at"))); due != 2*time.Second {
		t.Errorf("afterwards: due %s after the failure: %v", due, d["retry"])
	}
}

// The harness dies during a compaction: the compaction has failed, is requested again, and the message is answered,
// once (R17, C6).
func TestAHarnessDiesWhileItCompacts(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--grace", "300ms")
	inc := c.lease("ready", dying)
	c.full("s1", inc, `{}`, 80_000)
	c.sends("s1", "m1", `,"content":"hello"`)
	c.sends("s1", "m2", `,"content":"and then"`)
	first := c.compaction("s1", inc, 1)
	d := c.entry("session.h1.s1", func(d map[string]any) bool {
		return d["owned"] == false && at(d, "last_compaction") != nil
	})
	if at(d, "last_compaction", "outcome") != "failed" || at(d, "last_compaction", "error", "kind") != "owner-lost" ||
		queue(d) != "m1 m2" {
		t.Errorf("died: %v", d)
	}
	w := c.work("s1", func(d map[string]any) bool {
		return d["compaction"] != nil && at(d, "compaction", "compaction") != first
	})
	id := at(w, "compaction", "compaction").(string)
	next := c.lease("ready", lasting)
	c.fresh("s1")
	c.mustAppend("s1", next, 2, fact{"session.claimed", "s1", `{"incarnation":"` + next + `"}`},
		fact{"compaction.started", id, `{"compaction":"` + id + `"}`})
	c.compacted("s1", next, 2, id, 1_000)
	for _, m := range []string{"m1", "m2"} {
		c.work("s1", func(d map[string]any) bool { return at(d, "turn", "message") == m })
		turn := c.take("s1", next, 2)
		c.completes("s1", next, 2, turn)
	}
	c.gone("work.h1.s1")
	if d = c.settled("s1"); d["queue"] != nil || d["phase"] != "idle" || at(d, "ignored", "count") != 0.0 {
		t.Errorf("afterwards: %v", d)
	}
}
