package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWhoMayClaim checks the rules of incarnations and epochs with a plain client that keeps none of them.
func TestWhoMayClaim(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	// all of them live, and none supersedes another
	for _, inc := range []string{"99", "109", "110"} {
		if _, err := c.leases.Create(t.Context(), "harness.h1."+inc,
			[]byte(`{"exclusive":false,"state":"ready","ttl_ms":600000}`), keyTTL(10*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	opened := func(more string) fact { return fact{"session.opened", "", `{"incarnation":"INC"` + more + `}`} }
	claimed := func(more string) fact { return fact{"session.claimed", "", `{"incarnation":"INC"` + more + `}`} }
	released := fact{"session.released", "", `{}`}
	type step struct {
		incarnation string
		epoch       int
		fact
	}
	const pool = `,"exclusive":false`
	for i, x := range []struct {
		what  string
		steps []step
		owner string // "" for none
		epoch int
		why   string // reason for which the last step was ignored
	}{
		{"a greater number takes an owned one", []step{{"109", 1, opened("")}, {"110", 2, claimed("")}}, "110", 2, ""},
		{"numbers, not letters", []step{{"99", 1, opened("")}, {"110", 2, claimed("")}}, "110", 2, ""},
		{"a lower number does not", []step{{"110", 1, opened("")}, {"99", 2, claimed("")}}, "110", 1, "claim-refused"},
		{"nor the owner itself", []step{{"110", 1, opened("")}, {"110", 2, claimed("")}}, "110", 1, "claim-refused"},
		{"the epoch is one more", []step{{"109", 1, opened("")}, {"110", 3, claimed("")}}, "109", 1, "epoch"},
		{"not the same", []step{{"109", 1, opened("")}, {"110", 1, claimed("")}}, "109", 1, "epoch"},
		{"who left may come back", []step{{"110", 1, opened("")}, {"110", 1, released}, {"110", 2, claimed("")}}, "110",
			2, ""},
		{"an older one may not", []step{{"110", 1, opened("")}, {"110", 1, released}, {"109", 2, claimed("")}}, "", 1,
			"claim-refused"},
		{"of a pool it may", []step{{"110", 1, opened(pool)}, {"110", 1, released}, {"109", 2, claimed(pool)}}, "109",
			2, ""},
		{"a living member's is not taken", []step{{"109", 1, opened(pool)}, {"110", 2, claimed(pool)}}, "109", 1,
			"claim-refused"},
		{"a second open is ignored", []step{{"109", 1, opened("")}, {"109", 1, opened("")}}, "109", 1, "already-open"},
		{"what was never opened is not claimed", []step{{"109", 1, claimed("")}}, "", 0, "not-open"},
		{"nor opened under another epoch", []step{{"109", 2, opened("")}}, "", 0, "epoch"},
		{"a released one's turn is not started",
			[]step{{"109", 1, opened("")}, {"109", 1, released},
				{"109", 1, fact{"turn.started", "t1", `{"turn":"t1","cause":"message"}`}}}, "", 1, "not-owner"},
	} {
		s := fmt.Sprint("s", i)
		for _, st := range x.steps {
			f := st.fact
			f.data = strings.ReplaceAll(f.data, "INC", st.incarnation)
			if f.subject == "" {
				f.subject = s
			}
			c.mustAppend(s, st.incarnation, st.epoch, f)
		}
		d := c.settled(s)
		owner, ignored := "", 0.0
		if d["owned"] == true {
			owner = d["incarnation"].(string)
		}
		if x.why != "" {
			ignored = 1
		}
		if owner != x.owner || d["epoch"] != float64(x.epoch) || at(d, "ignored", "count") != ignored ||
			x.why != "" && at(d, "ignored", "last", "why") != x.why {
			t.Errorf("%s: owned by %q under epoch %v, ignored %v; want %q, %d, %q", x.what, owner, d["epoch"],
				d["ignored"], x.owner, x.epoch, x.why)
		}
	}
}

// Each failure in a row waits twice as long, up to a minute, to the nanosecond, on every machine; twenty failures of a
// kind are the limit (T1, T6, T17).
func TestDelaysGrow(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	c.fails("s1", inc, 1, "t1", "server_error", "")
	for i := 1; i < 20; i++ {
		d := c.entry("session.h1.s1", func(d map[string]any) bool { return at(d, "retry", "attempt") == float64(i) })
		want := min(time.Duration(1<<min(i, 7))*time.Second, time.Minute)
		if due := instant(t, at(d, "retry", "due_at")).Sub(instant(t, at(d, "last_turn", "at"))); due != want ||
			at(d, "retry", "same_failures") != float64(i) {
			t.Errorf("attempt %d: due after %s, want %s: %v", i, due, want, d["retry"])
		}
		turn := fmt.Sprint("t", i+1)
		// it may be due just now
		c.until(turn, func() bool {
			c.fresh("s1")
			_, err := c.append("s1", inc, 1,
				fact{"turn.started", turn, `{"turn":"` + turn + `","cause":"retry","synthetic":true}`},
				fact{"turn.failed", turn,
					`{"turn":"` + turn + `","error":{"kind":"server_error","text":"no"},"had_output":false}`})
			return err == nil
		})
	}
	if d := c.retry("s1", "abandoned"); at(d, "retry", "reason") != "no_progress" ||
		at(d, "retry", "attempt") != 19.0 || d["phase"] != "idle" {
		t.Errorf("the twentieth: %v", d["retry"])
	}
}
