package opencode

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// theatre is a broker without services: only the player writes to its log.
type theatre struct {
	t         *testing.T
	ctx       context.Context
	server    *embed.Server
	bus       *bus.Bus
	player    Player
	steps     []Step
	processes int
}

func newTheatre(t *testing.T) *theatre {
	t.Helper()
	s := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	th := &theatre{t: t, ctx: ctx, server: s, bus: natstest.Bus(t, s)}
	th.player = Player{Fast: true, OnStep: func(s Step) { th.steps = append(th.steps, s) },
		Connect: func(ctx context.Context) (*harness.Harness, error) {
			th.processes++
			return harness.Connect(ctx, harness.Config{ID: "opencode", URL: s.URL(), TTL: 2 * time.Minute})
		}}
	return th
}

// fold returns a session folded from the log, and the kinds of its facts.
func (th *theatre) read(id string) (*fold.State, []events.Kind) {
	th.t.Helper()
	s := fold.New(events.Ref{Harness: "opencode", Session: id})
	commits, err := th.bus.Log.Read(th.ctx, s.Ref(), 0)
	if err != nil {
		th.t.Fatal(err)
	}
	var kinds []events.Kind
	for i := range commits {
		for j := range commits[i].Events {
			kinds = append(kinds, commits[i].Events[j].Kind)
		}
		s.Fold(&commits[i])
	}
	return s, kinds
}

// leases returns the number of live leases of the harness.
func (th *theatre) leases() (n int) {
	th.t.Helper()
	if err := th.bus.KV.List(th.ctx, kv.Leases, events.HarnessLeaseKeys("opencode"),
		func(kv.Entry) error { n++; return nil }); err != nil {
		th.t.Fatal(err)
	}
	return n
}

func crashed(t *testing.T) ([]Step, Report) {
	t.Helper()
	trace, err := ReadTrace(bytes.NewReader(RecordedCrash))
	if err != nil || trace.Skipped > 0 {
		t.Fatal(err, trace.Problems)
	}
	return Steps(trace.Records)
}

// A recorded death: the log has the recorded facts and no end. Open entities stay open, and the lease stays.
func TestPlayDeath(t *testing.T) {
	th := newTheatre(t)
	steps, report := crashed(t)
	if err := th.player.Play(th.ctx, steps, report.Dead); err != nil {
		t.Fatal(err)
	}
	s, kinds := th.read(steps[0].Session)
	want := []events.Kind{"session.opened", "message.accepted", "turn.started", "tool.started", "tool.started",
		"tool.started", "prompt.requested", "tool.completed"}
	if !slices.Equal(kinds, want) {
		t.Errorf("the log has %v", kinds)
	}
	if !s.Owned || s.Turn == nil || len(s.Tools) != 2 || len(s.PendingPrompts()) != 1 {
		t.Errorf("owned %t, turn %v, %d calls, prompts %v", s.Owned, s.Turn, len(s.Tools), s.PendingPrompts())
	}
	if n := th.leases(); n != 1 || th.processes != 1 {
		t.Errorf("%d leases of %d processes", n, th.processes)
	}
	if last := th.steps[len(th.steps)-1]; !last.Restart || last.Session != "" {
		t.Errorf("the death was not reported: %+v", last)
	}
}

// A recording that stops while something is open has no restart that shows the death. The process dies all the same.
func TestPlayCutRecording(t *testing.T) {
	th := newTheatre(t)
	steps, _ := crashed(t)
	steps = steps[:len(steps)-1]
	if err := th.player.Play(th.ctx, steps, true); err != nil {
		t.Fatal(err)
	}
	if s, _ := th.read(steps[0].Session); !s.Owned || th.leases() != 1 {
		t.Errorf("owned %t, %d leases", s.Owned, th.leases())
	}
}

// A recording that ends well leaves gracefully.
func TestPlayGoodEnd(t *testing.T) {
	th := newTheatre(t)
	steps, report := translateFile(t, "testdata/b-bash-ok.jsonl")
	if err := th.player.Play(th.ctx, steps, report.Dead); err != nil {
		t.Fatal(err)
	}
	s, kinds := th.read(steps[0].Session)
	if s.Owned || s.Left != fold.LeftReleased || s.Turn != nil || kinds[len(kinds)-1] != "session.released" ||
		th.leases() != 0 {
		t.Errorf("owned %t, left %q, %v, %d leases", s.Owned, s.Left, kinds, th.leases())
	}
}

// After a restart the next process claims the sessions that it continues, after the dead one's work is recovered.
func TestPlayRestart(t *testing.T) {
	th := newTheatre(t)
	steps, report := translateFile(t, "testdata/j-kill9-compact.jsonl")
	id := steps[0].Session
	recovered := make(chan error, 1)
	th.player.OnStep = func(s Step) {
		if s.Restart {
			go func() { recovered <- th.recover(id) }()
		}
	}
	if err := th.player.Play(th.ctx, steps, report.Dead); err != nil {
		t.Fatal(err)
	}
	if err := <-recovered; err != nil {
		t.Fatal(err)
	}
	s, kinds := th.read(id)
	if slices.Index(kinds, "session.claimed") < slices.Index(kinds, "session.orphaned") {
		t.Errorf("claimed before it was recovered: %v", kinds)
	}
	if s.Epoch != 2 || s.Left != fold.LeftReleased || !slices.Contains(kinds, "session.claimed") || th.processes != 2 {
		t.Errorf("epoch %d, %q, %v, %d processes", s.Epoch, s.Left, kinds, th.processes)
	}
}

// recover does the work of a reconciler and a ledger after an owner's death.
func (th *theatre) recover(id string) error {
	s := fold.New(events.Ref{Harness: "opencode", Session: id})
	commits, err := th.bus.Log.Read(th.ctx, s.Ref(), 0)
	if err != nil {
		return err
	}
	for i := range commits {
		s.Fold(&commits[i])
	}
	orphaned := events.New(th.bus.NewID(), events.ServiceSource("reconciler", "test"), s.Ref(), s.Epoch, time.Now(),
		events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: s.Incarnation})
	seq, err := th.bus.Log.Append(th.ctx, s.Ref(), events.WriterReconciler, s.Seq, []events.Event{orphaned})
	if err != nil {
		return err
	}
	c, err := th.bus.Log.Commit(th.ctx, seq)
	if err != nil {
		return err
	}
	s.Fold(&c)
	doc, err := s.Encode()
	if err != nil {
		return err
	}
	_, err = th.bus.KV.Store(th.ctx, kv.State, events.SessionKey(s.Ref()), doc, 0)
	return err
}

// By default a recording takes as long as it was recorded. If ctx ends first, the player leaves gracefully.
func TestPlayPace(t *testing.T) {
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	const pause = 300 * time.Millisecond
	steps := []Step{{At: at, Session: "s1", Open: &events.SessionOpened{}},
		{At: at.Add(pause), Session: "s1",
			Facts: []events.Fact{events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}}}}
	th := newTheatre(t)
	th.player.Fast = false
	began := time.Now()
	if err := th.player.Play(th.ctx, steps, true); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < pause {
		t.Errorf("took %s", took)
	}

	th = newTheatre(t)
	th.player.Fast = false
	steps[1].At = at.Add(time.Hour)
	ctx, cancel := context.WithCancelCause(th.ctx)
	enough := errors.New("enough")
	th.player.OnStep = func(Step) { cancel(enough) }
	if err := th.player.Play(ctx, steps, true); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	if s, _ := th.read("s1"); s.Owned || s.Left != fold.LeftReleased || th.leases() != 0 {
		t.Errorf("owned %t, %q, %d leases", s.Owned, s.Left, th.leases())
	}
}

// The error names the step that failed, and the process leaves.
func TestPlayRefused(t *testing.T) {
	th := newTheatre(t)
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	err := th.player.Play(th.ctx, []Step{{At: at, Session: "never-opened",
		Facts: []events.Fact{events.TurnStopped{Turn: "t1", Actor: "person"}}}}, false)
	if !errors.Is(err, harness.ErrNotFound) ||
		!strings.Contains(err.Error(), "step 1 of 1: session never-opened") || th.leases() != 0 {
		t.Errorf("%v, %d leases", err, th.leases())
	}
	if err := th.player.Play(th.ctx, nil, false); err != nil || th.processes != 1 {
		t.Errorf("nothing to play: %v, %d processes", err, th.processes)
	}
}
