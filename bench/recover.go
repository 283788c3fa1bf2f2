package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

const (
	recoverSessions = 10_000
	recoverCalls    = 10 // open calls per session
	recoverRounds   = 3  // the median counts
	scaleSessions   = 100_000
	pipelineDepth   = 1024
)

// recovery is part d: a harness dies with 100,000 calls open.
func recovery(ctx context.Context, r *report, size float64) error {
	n := scaled(recoverSessions, size, 100)
	var recovered, floors, ratios []float64
	for range recoverRounds {
		took, floor, err := recoverOnce(ctx, n)
		if err != nil {
			return err
		}
		facts := float64(n * (recoverCalls + 2))
		recovered, floors, ratios = append(recovered, facts/took.Seconds()), append(floors, facts/floor.Seconds()),
			append(ratios, floor.Seconds()/took.Seconds())
	}
	r.add("d", fmt.Sprintf("recovery of %d calls in %d sessions", n*recoverCalls, n), median(recovered), "facts/s")
	r.add("d", "the same commits appended by themselves", median(floors), "facts/s")
	r.atLeast("d", "recovery / append", median(ratios), "×", 0.5)
	return nil
}

// recoverOnce returns the time of the recovery, from the new incarnation's ready to the last commit, and the time of
// appending the same commits.
func recoverOnce(ctx context.Context, n int) (took, floor time.Duration, err error) {
	s, err := start(ctx, false)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	if err := s.services(ctx); err != nil {
		return 0, 0, err
	}
	alive, err := harness.Connect(ctx, harness.Config{ID: "floor", InProcess: s.server})
	if err != nil {
		return 0, 0, err
	}
	if _, err := openCalls(ctx, s.bus, "dead", "1", n); err != nil {
		return 0, 0, err
	}
	last, err := openCalls(ctx, s.bus, alive.ID(), alive.Incarnation(), n)
	if err != nil {
		return 0, 0, err
	}
	if err := s.caughtUp(ctx); err != nil {
		return 0, 0, err
	}
	before, err := s.bus.Log.LastSeq(ctx)
	if err != nil {
		return 0, 0, err
	}
	// This is the successor of the dead process.
	h, err := harness.Connect(ctx, harness.Config{ID: "dead", InProcess: s.server})
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := h.Ready(ctx); err != nil {
		return 0, 0, err
	}
	if err := commitsAfter(ctx, s.bus, before, n); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	if err := s.caughtUp(ctx); err != nil {
		return 0, 0, err
	}
	floor, err = appendFloor(ctx, s.bus, alive, last)
	if err != nil {
		return 0, 0, err
	}
	return took, floor, errors.Join(h.Close(ctx), alive.Close(ctx))
}

// caughtUp waits until ledger and reconciler have handled the whole log.
func (s *suite) caughtUp(ctx context.Context) error {
	if err := drained(ctx, s.bus, ledger.Source(ledger.Default())); err != nil {
		return err
	}
	return drained(ctx, s.bus, control.Documents(reconciler.Name))
}

// openCalls opens n sessions of a harness, each with a turn and ten calls, and returns their seqs.
func openCalls(ctx context.Context, b *bus.Bus, harness, incarnation string, n int) ([]uint64, error) {
	p := &pipeline{bus: b, depth: pipelineDepth}
	for i := range n {
		ref := events.Ref{Harness: harness, Session: fmt.Sprintf("s%d", i)}
		facts := []events.Fact{events.SessionOpened{Incarnation: incarnation},
			events.TurnStarted{Turn: "t", Cause: events.CauseMessage}}
		for k := range recoverCalls {
			facts = append(facts, events.ToolStarted{Call: fmt.Sprintf("c%d", k), Turn: "t", Name: "bash"})
		}
		if err := p.append(ctx, ref, events.WriterHarness, 0,
			wrap(b, ref, events.HarnessSource(harness, incarnation), facts)); err != nil {
			return nil, err
		}
	}
	_, err := p.flush(ctx)
	return p.seqs, err
}

func wrap(b *bus.Bus, ref events.Ref, source string, facts []events.Fact) []events.Event {
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(b.NewID(), source, ref, 1, time.Now(), f)
	}
	return evs
}

// commitsAfter waits until the log has n more commits.
func commitsAfter(ctx context.Context, b *bus.Bus, before uint64, n int) error {
	tick := time.NewTicker(lagPause)
	defer tick.Stop()
	for {
		last, err := b.Log.LastSeq(ctx)
		if err != nil || last >= before+uint64(n) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// appendFloor appends the commits of a recovery to as many sessions of a live harness, without reads and decisions. The
// services have the same work with them.
func appendFloor(ctx context.Context, b *bus.Bus, h *harness.Harness, last []uint64) (time.Duration, error) {
	refs := make([]events.Ref, len(last))
	batches := make([][]events.Event, len(last))
	for i := range last {
		refs[i] = events.Ref{Harness: h.ID(), Session: fmt.Sprintf("s%d", i)}
		facts := []events.Fact{events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: h.Incarnation()}}
		for k := range recoverCalls {
			facts = append(facts, events.ToolInterrupted{Call: fmt.Sprintf("c%d", k), Reason: events.ReasonOwnerLost,
				Outcome: events.OutcomeUnknown})
		}
		facts = append(facts, events.TurnInterrupted{Turn: "t", Reason: events.ReasonOwnerLost})
		batches[i] = wrap(b, refs[i], events.ServiceSource("reconciler", "bench"), facts)
	}
	began := time.Now()
	p := &pipeline{bus: b, depth: pipelineDepth}
	for i := range last {
		if err := p.append(ctx, refs[i], events.WriterReconciler, last[i], batches[i]); err != nil {
			return 0, err
		}
	}
	_, err := p.flush(ctx)
	return time.Since(began), err
}

// scale is part e: a ledger in a process of its own over 100,000 sessions.
func scale(ctx context.Context, r *report, size float64) error {
	n := scaled(scaleSessions, size, 1000)
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := embed.Start(ctx, embed.Config{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer server.Shutdown()
	b, err := bus.Open(ctx, bus.Config{Server: server})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Layout.Ensure(ctx); err != nil {
		return err
	}
	led, err := spawn("ledger", dir, server.URL(), 0)
	defer func() { led.kill() }()
	if err != nil {
		return err
	}
	if err := manySessions(ctx, b, n); err != nil {
		return err
	}
	if err := drained(ctx, b, ledger.Source(ledger.Default())); err != nil {
		return err
	}
	r.add("e", fmt.Sprintf("memory of a ledger that has folded %d sessions", n), memoryMB(led.cmd.Process.Pid), "MB")
	led.kill()
	ref := events.Ref{Harness: "scale", Session: "after"}
	began := time.Now()
	if led, err = spawn("ledger", dir, server.URL(), 0); err != nil {
		return err
	}
	_, err = b.Log.Append(ctx, ref, events.WriterHarness, 0,
		[]events.Event{event(b, ref, events.SessionOpened{Incarnation: "1"})})
	if err != nil {
		return err
	}
	if err := watchKey(ctx, b, events.SessionKey(ref)); err != nil {
		return err
	}
	r.add("e", fmt.Sprintf("SIGKILL, start, first commit folded, at %d documents", n), time.Since(began).Seconds(), "s")
	return nil
}

func watchKey(ctx context.Context, b *bus.Bus, key string) error {
	return ignoreDone(b.KV.Watch(ctx, kv.State, []string{key}, func(u kv.Update) error {
		if !u.Ready {
			return errDone
		}
		return nil
	}))
}

func manySessions(ctx context.Context, b *bus.Bus, n int) error {
	p := &pipeline{bus: b, depth: pipelineDepth}
	for i := range n {
		ref := events.Ref{Harness: "scale", Session: fmt.Sprintf("s%d", i)}
		evs := []events.Event{event(b, ref, events.SessionOpened{Incarnation: "1", Title: "a session among many"}),
			event(b, ref, events.TurnStarted{Turn: "t", Cause: events.CauseMessage}),
			event(b, ref, events.ToolStarted{Call: "c", Turn: "t", Name: "bash"})}
		if err := p.append(ctx, ref, events.WriterHarness, 0, evs); err != nil {
			return err
		}
	}
	_, err := p.flush(ctx)
	return err
}

// playLedger runs a ledger in a process of its own.
func playLedger(ctx context.Context) error {
	b, err := bus.Open(ctx, bus.Config{URL: os.Getenv(listenEnv), Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer b.Close()
	return runLedger(ctx, b)
}
