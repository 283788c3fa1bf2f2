package clock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/test/program"
)

// Settings of the sessions, and the limits of their delays.
const (
	ttl        = 3 * time.Second
	grace      = time.Second
	retryAfter = 8 * time.Second
	deadline   = 9 * time.Second
	stall      = 10 * time.Second
	// The error of a reading of the clock: half of the longest round trip that internal/bus takes for a reading. A step
	// that is not followed shows as an error of seconds.
	early    = 250 * time.Millisecond
	late     = 6 * time.Second // on a busy machine
	patience = 3 * time.Minute
)

// Kinds of facts that the test waits for.
var (
	promptRequested = events.PromptRequested{}.Kind()
	promptExpired   = events.PromptExpired{}.Kind()
	retryScheduled  = events.RetryScheduled{}.Kind()
	turnRequested   = events.TurnRequested{}.Kind()
	turnFailed      = events.TurnFailed{}.Kind()
	interrupted     = events.TurnInterrupted{}.Kind()
	stopRequested   = events.TurnStopRequested{}.Kind()
	orphaned        = events.SessionOrphaned{}.Kind()
)

// steps are the changes of the clock, one after the other.
func steps() []time.Duration {
	hours := []time.Duration{-2 * time.Hour, 2 * time.Hour}
	if os.Getenv("HOLDFAST_LONG") == "" {
		return hours
	}
	return append([]time.Duration{5 * time.Second, -5 * time.Second, 10 * time.Minute, -10 * time.Minute,
		2 * time.Hour}, hours...)
}

// TestSteps sets the clock of the machine on which everything except the harnesses runs. Planned actions keep their
// delay, live sessions are not affected, and dead ones are detected.
func TestSteps(t *testing.T) {
	// most of the time it waits
	t.Parallel()
	dir := t.TempDir()
	clock := filepath.Join(dir, "clock")
	set(t, clock, 0)
	p := up(t, dir, clock, loopback)
	url := p.NATS
	w := watchCell(t, url)
	offset := time.Duration(0)
	for i, by := range steps() {
		offset += by
		s := w.begin(t, fmt.Sprint(i))
		w.step(t, clock, by, offset)
		s.end(t)
	}
	w.reported(t, len(steps()))
	checkReports(t, p, url, len(steps()))
}

// checkReports checks the reports of the steps to people: a log line, a metric, and the doctor's output.
func checkReports(t *testing.T, p *program.Process, url string, times int) {
	t.Helper()
	if n := strings.Count(p.Log(), "the broker's clock was set by "); n < times {
		t.Errorf("the log has %d steps, want %d at the least", n, times)
	}
	resp, err := http.Get(p.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"ledger", "reconciler", "retry", "compaction"} {
		if want := fmt.Sprintf("holdfast_events_total{kind=\"clock_steps\",service=%q} %d", service,
			times); !strings.Contains(string(metrics), want) {
			t.Errorf("/metrics does not have %s", want)
		}
	}
	// its exit status may report other problems
	out, err := exec.Command(binary(t), "doctor", "--nats", url).CombinedOutput()
	if !strings.Contains(string(out), "the broker's clock was set back by ") ||
		!strings.Contains(string(out), "the broker's clock was set forward by ") {
		t.Errorf("the doctor does not report the steps: %v\n%s", err, out)
	}
}

// TestSuspended: the machine on which everything except the harnesses runs is suspended for longer than a lease lives.
// Its clock is two hours ahead afterwards.
func TestSuspended(t *testing.T) {
	// most of the time it waits
	t.Parallel()
	dir := t.TempDir()
	clock := filepath.Join(dir, "clock")
	set(t, clock, 0)
	p := up(t, dir, clock, loopback)
	url := p.NATS
	w := watchCell(t, url)
	s := w.begin(t, "s")
	if _, err := w.b.Clock.Now(w.ctx); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	p.Stop()
	set(t, clock, 2*time.Hour)
	<-time.After(ttl + grace)
	p.Continue()
	s.stood = time.Since(stopped)
	s.end(t)
	w.reported(t, 1)
}

// TestRestart: a service that starts after the step corrects the instants that were planned before it.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			// most of the time it waits
			t.Parallel()
			dir := t.TempDir()
			clock := filepath.Join(dir, "clock")
			set(t, clock, 0)
			p := up(t, dir, clock, ownAddress())
			url := p.NATS
			w := watchCell(t, url)
			s := w.plan(t, "r")
			w.step(t, clock, by, by)
			w.reported(t, 1)
			w.b.Close()
			p.Kill()
			url = up(t, dir, clock, strings.TrimPrefix(url, "nats://")).NATS
			w.connect(t, url)
			s.planned(t)
		})
	}
}

// cell is the test's own connection to the cell.
type cell struct {
	ctx context.Context
	b   *bus.Bus
	url string
}

func watchCell(t *testing.T, url string) *cell {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	w := &cell{ctx: ctx}
	w.connect(t, url)
	return w
}

func (w *cell) connect(t *testing.T, url string) {
	t.Helper()
	b, err := bus.Open(w.ctx, bus.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	w.b, w.url = b, url
}

// step sets the clock, and returns when the broker has it: later commits have timestamps of the new clock.
func (w *cell) step(t *testing.T, clock string, by, offset time.Duration) {
	t.Helper()
	if _, err := w.b.Clock.Now(w.ctx); err != nil {
		t.Fatal(err)
	}
	set(t, clock, offset)
	natstest.Until(t, "the broker's clock to be set by "+by.String(), func() bool {
		now, err := w.b.Clock.Now(w.ctx)
		return err == nil && now.Sub(time.Now().Add(offset)).Abs() < time.Second
	})
}

// reported checks the steps that the services have stored.
func (w *cell) reported(t *testing.T, want int) {
	t.Helper()
	natstest.Until(t, "the steps to be kept", func() bool {
		kept, _, err := control.LoadSteps(w.ctx, w.b.KV)
		return err == nil && len(kept) >= want
	})
	kept, _, err := control.LoadSteps(w.ctx, w.b.KV)
	if err != nil || len(kept) != want {
		t.Errorf("%d steps are kept, want %d: %+v, %v", len(kept), want, kept, err)
	}
	for i, s := range kept {
		if want := steps()[i%len(steps())]; len(kept) == len(steps()) && (s.By()-want).Abs() > time.Second {
			t.Errorf("step %d is %s, want %s", i, s.By(), want)
		}
	}
}

// scene is the work in progress when the clock is set.
type scene struct {
	w     *cell
	name  string
	live  *harness.Harness
	began map[string]time.Time // by session: the instant of the plan
	turns map[string]*harness.Turn
	stop  context.CancelFunc
	stood time.Duration        // how long the machine was suspended
	pulse *natstest.Pulse      // how long this process was not scheduled
	disk  func() time.Duration // how long the disk stood still, and a broker that syncs each write with it
}

func (w *cell) harness(t *testing.T, id string) *harness.Harness {
	t.Helper()
	h, err := harness.Connect(w.ctx, harness.Config{ID: id, URL: w.url, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(w.ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

// open opens a session with a turn, and returns the instant.
func (x *scene) open(t *testing.T, h *harness.Harness, name string) *harness.Session {
	t.Helper()
	s, err := h.Open(x.w.ctx, name,
		harness.OpenOptions{Policy: &events.PolicyPatch{StallAfterS: events.Set(int64(stall / time.Second))}})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := s.StartTurn(x.w.ctx, harness.StartOptions{ID: "turn"})
	if err != nil {
		t.Fatal(err)
	}
	x.began[name], x.turns[name] = time.Now(), turn
	return s
}

// plan plans a retry and the end of a prompt.
func (w *cell) plan(t *testing.T, name string) *scene {
	t.Helper()
	x := &scene{w: w, name: name, began: map[string]time.Time{}, turns: map[string]*harness.Turn{}, stop: func() {},
		pulse: natstest.Feel(t), disk: natstest.FeelDisk(t)}
	x.live = w.harness(t, "live"+name)
	t.Cleanup(x.live.Abandon)
	x.open(t, x.live, "failed")
	if err := x.turns["failed"].Fail(w.ctx, events.Failure{Kind: failure.RateLimit, Text: "slow down",
		RetryAfterMS: retryAfter.Milliseconds()}, false); err != nil {
		t.Fatal(err)
	}
	x.began["failed"] = time.Now()
	x.open(t, x.live, "asked")
	now, err := w.b.Clock.Now(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	x.began["asked"] = time.Now()
	ctx, stop := context.WithCancel(w.ctx)
	x.stop = stop
	// it expires
	go func() {
		_, _ = x.turns["asked"].Ask(ctx, harness.Prompt{ID: "q", Title: "?", Deadline: now.Add(deadline)})
	}()
	natstest.Until(t, "the question and the retry", func() bool {
		return x.when("asked", promptRequested) && x.when("failed", retryScheduled)
	})
	return x
}

// begin plans, and starts a turn with pings, a silent turn, and a turn whose process has died.
func (w *cell) begin(t *testing.T, name string) *scene {
	t.Helper()
	x := w.plan(t, name)
	busy := x.open(t, x.live, "busy")
	ctx, stop := context.WithCancel(w.ctx)
	before := x.stop
	x.stop = func() { before(); stop() }
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				busy.Progress()
			case <-ctx.Done():
				return
			}
		}
	}()
	x.open(t, x.live, "silent")
	dead := w.harness(t, "dead"+name)
	x.open(t, dead, "left")
	natstest.Until(t, "the documents", func() bool {
		_, err := w.b.KV.Load(w.ctx, kv.State, events.SessionKey(events.Ref{Harness: "dead" + name, Session: "left"}))
		return err == nil
	})
	dead.Abandon()
	x.began["left"] = time.Now()
	return x
}

func (x *scene) ref(name string) events.Ref {
	if name == "left" || name == "gone" {
		return events.Ref{Harness: name2harness(name) + x.name, Session: name}
	}
	return events.Ref{Harness: "live" + x.name, Session: name}
}

func name2harness(name string) string {
	if name == "gone" {
		return "gone"
	}
	return "dead"
}

// kinds returns the kinds of all facts of a session, in order.
func (x *scene) kinds(name string) []events.Kind {
	commits, err := x.w.b.Log.Read(x.w.ctx, x.ref(name), 0)
	if err != nil {
		return nil
	}
	var all []events.Kind
	for _, c := range commits {
		for _, e := range c.Events {
			all = append(all, e.Fact.Kind())
		}
	}
	return all
}

// when reports whether a fact of this kind is in the session.
func (x *scene) when(name string, k events.Kind) bool { return slices.Contains(x.kinds(name), k) }

// waits waits for a fact of this kind, and checks its delay against the plan.
func (x *scene) waits(t *testing.T, name string, k events.Kind, least, most time.Duration) {
	t.Helper()
	natstest.Until(t, string(k)+" in "+name, func() bool { return x.when(name, k) })
	took := time.Since(x.began[name])
	t.Logf("%s: %s after %s; the disk stood still for %s", name, k, took.Round(10*time.Millisecond),
		x.disk().Round(10*time.Millisecond))
	most += late + x.stood + x.pulse.Lost() + x.disk()
	if took < least-early || took > most {
		t.Errorf("%s: %s after %s, want %s to %s", name, k, took, least, most)
	}
}

// planned waits for the planned facts.
func (x *scene) planned(t *testing.T) {
	t.Helper()
	defer x.stop()
	x.waits(t, "failed", turnRequested, retryAfter, retryAfter)
	x.waits(t, "asked", promptExpired, deadline, deadline)
}

// end waits for everything that has to happen, and then checks that nothing else did.
func (x *scene) end(t *testing.T) {
	t.Helper()
	gone := x.w.harness(t, "gone"+x.name)
	x.open(t, gone, "gone")
	natstest.Until(t, "the document", func() bool {
		_, err := x.w.b.KV.Load(x.w.ctx, kv.State, events.SessionKey(x.ref("gone")))
		return err == nil
	})
	gone.Abandon()
	x.began["gone"] = time.Now()
	// Their connections ended with them.
	least := min(reconciler.Default().DisconnectGrace, ttl-ttl/3)
	x.waits(t, "left", orphaned, least, 2*ttl+grace)
	x.waits(t, "gone", orphaned, least, 2*ttl+grace)
	x.planned(t)
	x.waits(t, "silent", turnFailed, stall, stall+ttl)
	bad := []events.Kind{turnFailed, interrupted, orphaned, stopRequested}
	for _, name := range []string{"busy", "asked", "failed", "silent"} {
		for _, k := range x.kinds(name) {
			allowed := k == turnFailed && (name == "failed" || name == "silent") ||
				k == stopRequested && name == "silent"
			if slices.Contains(bad, k) && !allowed {
				t.Errorf("%s: %s, although its process is alive", name, k)
			}
		}
	}
	ctx, cancel := context.WithTimeout(x.w.ctx, late)
	defer cancel()
	if err := x.live.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}
