package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

func session(id string) string { return fmt.Sprintf(`{"harness":"h1","session":%q,"by":"ada"}`, id) }

// fails ends a session's turn with a failure that has more fields of the error.
func (c *cell) fails(session, inc string, epoch int, turn, kind, more string) {
	c.t.Helper()
	c.mustAppend(session, inc, epoch,
		fact{"turn.failed", turn,
			`{"turn":"` + turn + `","error":{"kind":"` + kind + `","text":"no"` + more + `},"had_output":false}`})
}

// retry waits until a session's retry is in a state; a scheduled one may already be due.
func (c *cell) retry(session, state string) map[string]any {
	c.t.Helper()
	return c.entry("session.h1."+session, func(d map[string]any) bool {
		is := at(d, "retry", "state")
		return d["seq"].(float64) >= float64(c.seq[session]) &&
			(is == state || state == "scheduled" && is == "starting")
	})
}

// stored returns a commit as the broker has it.
func (c *cell) stored(seq any) *jetstream.RawStreamMsg {
	c.t.Helper()
	log, err := c.js.Stream(c.t.Context(), "HF_LOG")
	if err != nil {
		c.t.Fatal(err)
	}
	m, err := log.GetMsg(c.t.Context(), uint64(seq.(float64)))
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// A failed turn is requested again after its delay, with its options, and each attempt waits longer; a completed turn
// resets the delay (T1, T7, T13).
func TestAFailedTurnComesBack(t *testing.T) {
	c := up(t)
	inc := c.lease("ready", lasting)
	c.mustAppend("s1", inc, 1, fact{"session.opened", "s1", `{"incarnation":"` + inc + `"}`},
		fact{"message.accepted", "m1", `{"message":"m1","content":"hello","synthetic":false}`},
		fact{"turn.started", "t1",
			`{"turn":"t1","cause":"message","synthetic":false,"message":"m1","options":{"model":"x"}}`})
	pulse := natstest.Feel(t)
	c.fails("s1", inc, 1, "t1", "server_error", "")
	d := c.retry("s1", "scheduled")
	due := instant(t, at(d, "retry", "due_at"))
	if due.Sub(instant(t, at(d, "last_turn", "at"))) != 2*time.Second || at(d, "retry", "attempt") != 1.0 ||
		at(d, "retry", "turn") != "t1" || d["phase"] != "retrying" ||
		at(d, "retry", "error", "kind") != "server_error" {
		t.Errorf("scheduled: %v", d["retry"])
	}
	w := c.entry("work.h1.s1", func(d map[string]any) bool { return at(d, "turn", "of_turn") == "t1" })
	if at(w, "turn", "cause") != "retry" || at(w, "turn", "options", "model") != "x" ||
		at(w, "turn", "attempt") != 1.0 || at(w, "turn", "message") != "m1" || w["owned"] != true {
		t.Errorf("asked for: %v", w)
	}
	d = c.fresh("s1")
	if at(d, "retry", "state") != "starting" || d["phase"] != "retrying" {
		t.Errorf("asked for: %v", d)
	}
	m := c.stored(at(d, "pending", "turn", "seq"))
	batch := c.changes(at(d, "pending", "turn", "seq"))
	if m.Subject != "hf.log.h1.s1.retry" || kinds(batch) != "holdfast.turn.requested " ||
		!strings.HasPrefix(fmt.Sprint(batch[0]["source"]), "/service/retry/") {
		t.Errorf("who asks: %s %v", m.Subject, batch)
	}
	if late := m.Time.Sub(due); late < 0 || late > soon(pulse) {
		t.Errorf("asked for at %s, due at %s", m.Time, due)
	}
	turn := at(w, "turn", "turn").(string)
	c.mustAppend("s1", inc, 1, fact{"turn.started", turn,
		`{"turn":"` + turn + `","cause":"retry","synthetic":true,"of_turn":"t1"}`})
	c.fails("s1", inc, 1, turn, "server_error", "")
	d = c.retry("s1", "scheduled")
	if due := instant(t, at(d, "retry", "due_at")).Sub(instant(t, at(d, "last_turn", "at"))); due != 4*time.Second ||
		at(d, "retry", "attempt") != 2.0 || at(d, "retry", "same_failures") != 2.0 {
		t.Errorf("the second: %v after %s", d["retry"], due)
	}
	c.fresh("s1")
	c.mustAppend("s1", inc, 1, fact{"turn.started", "t9", `{"turn":"t9","cause":"message","synthetic":false}`},
		fact{"turn.completed", "t9", `{"turn":"t9"}`})
	if d = c.settled("s1"); at(d, "retry", "state") != nil ||
		at(d, "retry", "attempt") != nil && at(d, "retry", "attempt") != 0.0 || d["phase"] != "idle" {
		t.Errorf("completed: %v", d)
	}
}

// The delay that a provider asks for is a minimum and has a maximum (T2); a value that is no number is ignored.
func TestTheProvidersDelay(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	for i, x := range []struct {
		header string
		want   time.Duration
	}{
		{``, 2 * time.Second}, {`,"retry_after_ms":1`, 2 * time.Second},
		{`,"retry_after_ms":7500`, 7500 * time.Millisecond}, {`,"retry_after_ms":86400000`, 15 * time.Minute},
		{`,"retry_after_ms":-5`, 2 * time.Second}, {`,"retry_after_ms":1e300`, 15 * time.Minute},
		{`,"retry_after_ms":"soon"`, 2 * time.Second}, {`,"retry_after_ms":null`, 2 * time.Second},
	} {
		s := fmt.Sprint("s", i)
		c.begin(s, inc)
		c.fails(s, inc, 1, "t1", "rate_limit", x.header)
		d := c.retry(s, "scheduled")
		if got := instant(t, at(d, "retry", "due_at")).Sub(instant(t, at(d, "last_turn", "at"))); got != x.want {
			t.Errorf("%s: due after %s, want %s", x.header, got, x.want)
		}
	}
}

// Failures of kinds without a retry name the reason (T3, T5); "now" retries them (T15), once, with the person as asker.
func TestWhatIsNotTriedAgain(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	for _, kind := range []string{"authentication", "quota", "model_not_found", "aborted", "runtime_not_ready",
		"model_refusal"} {
		s := "s-" + kind
		c.begin(s, inc)
		c.fails(s, inc, 1, "t1", kind, "")
		if d := c.retry(s, "abandoned"); at(d, "retry", "reason") != kind || at(d, "retry", "turn") != "t1" ||
			d["phase"] != "idle" {
			t.Errorf("%s: %v %v", kind, d["phase"], d["retry"])
		}
	}
	code, reply := c.ask("retry.now", session("s-quota"))
	if code != "" || reply["seq"] == nil {
		t.Fatalf("now: %s %v", code, reply)
	}
	batch := c.changes(reply["seq"])
	if kinds(batch) != "holdfast.turn.requested " || batch[0]["source"] != "/person/ada" ||
		at(batch[0], "data", "of_turn") != "t1" || at(batch[0], "data", "cause") != "retry" {
		t.Errorf("now said %v", batch)
	}
	if code, again := c.ask("retry.now", session("s-quota")); code != "" || again["seq"] != reply["seq"] {
		t.Errorf("now again: %s %v, first %v", code, again, reply)
	}
	c.entry("work.h1.s-quota", func(d map[string]any) bool { return at(d, "turn", "of_turn") == "t1" })
	if code, reply := c.ask("ledger.configure",
		`{"harness":"h1","session":"s-authentication","provider_changed":true,"by":"ada"}`); code != "" {
		t.Errorf("provider changed: %s %v", code, reply)
	}
	if d := c.fresh("s-authentication"); at(d, "retry", "state") == "abandoned" || at(d, "pending", "turn") != nil {
		t.Errorf("provider changed: %v %v", d["retry"], d["pending"])
	}
}

// Each refusal has its code, and its body has the present state.
func TestRetryRefuses(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("runs", inc)
	c.begin("done", inc, fact{"turn.completed", "t1", `{"turn":"t1"}`})
	c.begin("closed", inc, fact{"session.closed", "closed", `{"reason":"finished"}`})
	c.begin("cancelled", inc)
	c.fails("cancelled", inc, 1, "t1", "server_error", `,"retry_after_ms":600000`)
	c.retry("cancelled", "scheduled")
	code, first := c.ask("retry.cancel", session("cancelled"))
	if d := c.fresh("cancelled"); code != "" || d["seq"] != first["seq"] || at(d, "retry", "state") != "abandoned" ||
		at(d, "retry", "reason") != "cancelled" || d["phase"] != "idle" {
		t.Errorf("cancel: %s %v %v", code, first, d)
	}
	for _, x := range []struct{ verb, body, code, field, want string }{
		{"now", session("absent"), "404", "what", "session"},
		{"cancel", session("absent"), "404", "what", "session"},
		{"resume", session("absent"), "404", "what", "session"},
		{"now", `{"harness":"h1","session":"done"}`, "400", "field", "by"},
		{"cancel", `{"harness":"h1","by":"ada"}`, "400", "field", "session"},
		{"resume", `{"session":"done","by":"ada"}`, "400", "field", "harness"},
		{"now", `{"harness":"h1","session":"` + strings.Repeat("x", 129) + `","by":"ada"}`, "400", "field", "session"},
		{"now", `{"harness":5}`, "400", "field", "harness"},
		{"now", `not json`, "400", "reason", ""},
		{"now", session("runs"), "409", "status", "running"},
		{"resume", session("runs"), "409", "status", "running"},
		{"cancel", session("runs"), "409", "status", "running"},
		{"now", session("done"), "409", "status", "idle"},
		{"resume", session("done"), "409", "status", "idle"},
		{"cancel", session("done"), "409", "status", "idle"},
		{"now", session("closed"), "409", "status", "closed"},
		{"resume", session("closed"), "409", "status", "closed"},
		{"cancel", session("closed"), "409", "status", "closed"},
	} {
		code, reply := c.ask("retry."+x.verb, x.body)
		if got := fmt.Sprint(reply[x.field]); code != x.code || reply[x.field] == nil ||
			!strings.Contains(got, x.want) {
			t.Errorf("%s %.60s: %s %v, want %s with %s %q", x.verb, x.body, code, reply, x.code, x.field, x.want)
		}
		if code == "409" && (reply["seq"] == nil || reply["at"] == nil) {
			t.Errorf("%s %s: 409 without what stands: %v", x.verb, x.body, reply)
		}
	}
	if code, again := c.ask("retry.cancel", session("cancelled")); code != "" || again["seq"] != first["seq"] {
		t.Errorf("cancelled again: %s %v, first %v", code, again, first)
	}
}

// After a crash an interrupted turn resumes automatically, or by a person if the policy is hold (T10, R14).
func TestAnInterruptedTurnGoesOn(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--grace", "300ms")
	inc := c.lease("ready", dying)
	c.beginBy("auto", inc, `{}`)
	c.beginBy("hold", inc, `{"resume":"hold"}`)
	c.beginBy("never", inc, `{"resume_max":0}`)
	w := c.entry("work.h1.auto", func(d map[string]any) bool { return at(d, "turn", "cause") == "resume" })
	if at(w, "turn", "of_turn") != "t1" || w["owned"] != false {
		t.Errorf("auto: %v", w)
	}
	if d := c.fresh("auto"); at(d, "retry", "resumes") != 1.0 || at(d, "last_turn", "outcome") != "interrupted" {
		t.Errorf("auto: %v", d)
	}
	if d := c.retry("never", "abandoned"); at(d, "retry", "reason") != "resume_exhausted" ||
		d["phase"] != "interrupted" {
		t.Errorf("never: %v", d)
	}
	if d := c.fresh("hold"); d["phase"] != "interrupted" || at(d, "pending", "turn") != nil {
		t.Errorf("hold: %v", d)
	}
	code, reply := c.ask("retry.resume", session("hold"))
	d := c.entry("session.h1.hold", func(d map[string]any) bool { return at(d, "pending", "turn") != nil })
	if code != "" || at(d, "pending", "turn", "cause") != "resume" || at(d, "pending", "turn", "of_turn") != "t1" ||
		at(d, "pending", "turn", "seq") != reply["seq"] {
		t.Errorf("resumed: %s %v %v", code, reply, d["pending"])
	}
}

// Disabling automatic retry cancels the waiting retry, and one that was requested; a person's message enables it again,
// a synthetic one does not (T8).
func TestAutoRetryIsSwitchedOff(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	off := func(s string) {
		if code, reply := c.ask("ledger.configure",
			`{"harness":"h1","session":"`+s+`","policy":{"auto_retry":false},"by":"ada"}`); code != "" {
			t.Fatalf("configure: %s %v", code, reply)
		}
	}
	c.begin("waits", inc)
	c.fails("waits", inc, 1, "t1", "server_error", `,"retry_after_ms":600000`)
	c.retry("waits", "scheduled")
	c.begin("asked", inc)
	c.fails("asked", inc, 1, "t1", "server_error", "")
	c.entry("work.h1.asked", func(d map[string]any) bool { return at(d, "turn", "of_turn") == "t1" })
	for _, s := range []string{"waits", "asked"} {
		off(s)
		if d := c.retry(s, "abandoned"); at(d, "retry", "reason") != "disabled_by_user" ||
			at(d, "pending", "turn") != nil {
			t.Errorf("%s: %v %v", s, d["retry"], d["pending"])
		}
	}
	c.gone("work.h1.asked")
	for _, x := range []struct {
		synthetic string
		want      bool
	}{{"true", false}, {"false", true}} {
		code, reply := c.ask("compaction.send",
			`{"harness":"h1","session":"waits","message":"m-`+x.synthetic+`","content":"go on","synthetic":`+
				x.synthetic+`,"by":"ada"}`)
		if d := c.fresh("waits"); code != "" || at(d, "policy", "auto_retry") != x.want {
			t.Errorf("synthetic %s: %s %v, auto_retry %v", x.synthetic, code, reply, at(d, "policy", "auto_retry"))
		}
	}
}

// A waiting retry has one timer at the broker, at its instant; a cancelled retry never starts, even if its timer fires.
func TestARetryHasOneTimer(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	c.fails("s1", inc, 1, "t1", "server_error", `,"retry_after_ms":600000`)
	due := instant(t, at(c.retry("s1", "scheduled"), "retry", "due_at"))
	timers, err := c.js.Stream(t.Context(), "HF_TIMERS")
	if err != nil {
		t.Fatal(err)
	}
	var m *jetstream.RawStreamMsg
	c.until("a timer", func() bool {
		m, err = timers.GetLastMsgForSubject(t.Context(), "hf.timer.retry.h1.s1")
		return !errors.Is(err, jetstream.ErrMsgNotFound)
	})
	if err != nil {
		t.Fatal(err)
	}
	when, found := strings.CutPrefix(m.Header.Get("Nats-Schedule"), "@at ")
	if !found || !instant(t, when).Equal(due) {
		t.Errorf("the timer says %v, due at %s", m.Header, due)
	}
	info, err := timers.Info(t.Context(), jetstream.WithSubjectFilter("hf.timer.retry.h1.s1"))
	if err != nil || info.State.Subjects["hf.timer.retry.h1.s1"] != 1 {
		t.Errorf("timers: %v %v", info, err)
	}
	c.begin("s2", inc)
	c.fails("s2", inc, 1, "t1", "server_error", `,"retry_after_ms":5000`)
	c.retry("s2", "scheduled")
	if code, reply := c.ask("retry.cancel", session("s2")); code != "" {
		t.Fatalf("cancel: %s %v", code, reply)
	}
	c.begin("s3", inc)
	c.fails("s3", inc, 1, "t1", "server_error", `,"retry_after_ms":5000`)
	// it was due after s2
	c.entry("work.h1.s3", func(d map[string]any) bool { return at(d, "turn", "of_turn") == "t1" })
	if d := c.fresh("s2"); at(d, "retry", "reason") != "cancelled" || at(d, "pending", "turn") != nil {
		t.Errorf("cancelled: %v %v", d["retry"], d["pending"])
	}
}

// A silent turn is stopped, fails as stalled, and is retried; pings and open calls prevent it (T18).
func TestASilentTurnIsStalled(t *testing.T) {
	c := up(t)
	inc := c.lease("ready", lasting)
	pulse := natstest.Feel(t)
	c.beginBy("silent", inc, `{"stall_after_s":4}`)
	c.beginBy("busy", inc, `{"stall_after_s":4}`, fact{"tool.started", "c", `{"call":"c","turn":"t1","name":"make"}`})
	c.beginBy("pings", inc, `{"stall_after_s":4}`)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if c.nc.Publish("hf.progress.h1.pings", nil) != nil {
					return
				}
			case <-stop:
				return
			}
		}
	}()
	d := c.entry("session.h1.silent", func(d map[string]any) bool { return at(d, "last_turn", "outcome") == "failed" })
	if at(d, "last_turn", "error", "kind") != "stalled" || at(d, "pending", "stop", "actor") != "stall" ||
		at(d, "pending", "stop", "turn") != "t1" {
		t.Errorf("silent: %v %v", d["last_turn"], d["pending"])
	}
	if silent := instant(t, at(d, "last_turn", "at")).Sub(instant(t, d["opened_at"])); silent < 4*time.Second ||
		silent > 5*time.Second+soon(pulse) {
		t.Errorf("stalled after %s", silent)
	}
	if got := kinds(c.changes(at(d, "last_turn", "seq"))); got != "holdfast.turn.stop_requested holdfast.turn.failed " {
		t.Errorf("one commit: %s", got)
	}
	c.retry("silent", "scheduled")
	for _, s := range []string{"busy", "pings"} {
		if d := c.fresh(s); at(d, "turn", "id") != "t1" || d["phase"] != "running" {
			t.Errorf("%s: %v", s, d)
		}
	}
}

// Facts that only services may append are parked when a harness appends them.
func TestAHarnessDoesNotDecide(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	events := []fact{
		{"turn.requested", "t2", `{"turn":"t2","cause":"retry","of_turn":"t1"}`},
		{"retry.scheduled", "t1",
			`{"turn":"t1","attempt":1,"delay_ms":1,"due_at":"2026-01-01T00:00:00Z","error":{"kind":"x","text":""}}`},
		{"retry.abandoned", "t1", `{"turn":"t1","attempt":1,"reason":"x"}`},
		{"turn.stop_requested", "t1", `{"turn":"t1","actor":"person"}`},
		{"compaction.requested", "k1", `{"compaction":"k1","reason":"manual","used":1,"limit":2}`},
		{"message.withdrawn", "m1", `{"message":"m1","by":"ada"}`},
	}
	c.mustAppend("s1", inc, 1, events...)
	if d := c.settled("s1"); d["parked"] != float64(len(events)) || at(d, "pending", "turn") != nil ||
		at(d, "pending", "compaction") != nil || at(d, "pending", "stop") != nil {
		t.Errorf("document: %v", d)
	}
}

// Each service is a NATS micro service with its name and the verbs of the contract.
func TestServicesAreFoundByName(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	want := map[string][]string{
		"holdfast-ledger":     {"get", "list", "answer", "reject", "dismiss", "stop", "close", "configure", "rebuild"},
		"holdfast-retry":      {"now", "cancel", "resume"},
		"holdfast-compaction": {"send", "withdraw", "compact", "check"},
		"holdfast-reconciler": {"sweep", "report"},
	}
	for name, verbs := range want {
		m, err := c.nc.Request("$SRV.INFO."+name, nil, patience)
		if errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%s is not there", name)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var info struct{ Endpoints []struct{ Subject string } }
		decode(t, m.Data, &info)
		have := map[string]bool{}
		for _, e := range info.Endpoints {
			have[e.Subject] = true
		}
		for _, v := range verbs {
			if subject := "hf.svc." + strings.TrimPrefix(name, "holdfast-") + "." + v; !have[subject] {
				t.Errorf("%s does not serve %s: %v", name, subject, info.Endpoints)
			}
		}
	}
}
