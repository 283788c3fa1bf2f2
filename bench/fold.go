package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/ledger"
)

const (
	foldSessions = 500
	foldEvents   = 60_000 // not synced; a sixth of it synced
	foldRounds   = 3      // ledger and floor in turn; the median ratio counts
	floorBatch   = 512    // as in the ledger
	lagPause     = 5 * time.Millisecond
)

// throughput is part a.
func throughput(ctx context.Context, r *report, size float64) error {
	for _, mode := range []struct {
		name   string
		synced bool
		events int
	}{{"lazy", false, scaled(foldEvents, size, 2000)}, {"synced", true, scaled(foldEvents/6, size, 1000)}} {
		var ratios, rates, floors []float64
		for range foldRounds {
			led, floor, err := foldOnce(ctx, mode.synced, mode.events)
			if err != nil {
				return err
			}
			rates, floors, ratios = append(rates, led), append(floors, floor), append(ratios, led/floor)
		}
		r.add("a", "ledger, "+mode.name, median(rates), "events/s")
		r.add("a", "floor, "+mode.name, median(floors), "events/s")
		r.atLeast("a", "ledger / floor, "+mode.name, median(ratios), "×", 0.6)
	}
	return nil
}

func median(xs []float64) float64 {
	xs = slices.Clone(xs)
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// foldOnce fills a log and lets the ledger fold it. Then the floor reads the same log and writes documents of the same
// size.
func foldOnce(ctx context.Context, synced bool, n int) (led, floor float64, err error) {
	s, err := start(ctx, synced)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	if err := fill(ctx, s.bus, n); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if err := s.ledger(ctx); err != nil {
		return 0, 0, err
	}
	if err := drained(ctx, s.bus, ledger.Source(ledger.Default())); err != nil {
		return 0, 0, err
	}
	led = float64(n) / time.Since(begin).Seconds()
	e, err := s.bus.KV.Load(ctx, kv.State, events.SessionKey(foldRef(0)))
	if err != nil {
		return 0, 0, err
	}
	f := &floorFolder{bus: s.bus, doc: e.Value, revs: map[string]uint64{}, done: make(chan struct{}), left: n}
	begin = time.Now()
	if err := s.run(ctx, func(ctx context.Context,
		b *bus.Bus) error {
		return b.Consumers.Consume(ctx, floorSource, f)
	}); err != nil {
		return 0, 0, err
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	return led, float64(n) / time.Since(begin).Seconds(), nil
}

var floorSource = consumer.Source{Stream: consumer.LogStream, Durable: "floor", BatchMax: floorBatch}

func foldRef(i int) events.Ref {
	return events.Ref{Harness: "bench", Session: fmt.Sprintf("s%03d", i%foldSessions)}
}

// fill writes n events: each session runs one tool after the other in one turn.
func fill(ctx context.Context, b *bus.Bus, n int) error {
	last := make([]uint64, foldSessions)
	for i := 0; i < n; i += foldSessions {
		p := &pipeline{bus: b, depth: foldSessions + 1}
		for k := range min(foldSessions, n-i) {
			if err := p.append(ctx, foldRef(k), events.WriterHarness, last[k],
				[]events.Event{event(b, foldRef(k), foldFact(i/foldSessions))}); err != nil {
				return err
			}
		}
		seqs, err := p.flush(ctx)
		if err != nil {
			return err
		}
		copy(last, seqs)
	}
	return nil
}

func foldFact(round int) events.Fact {
	call := fmt.Sprintf("call_%024d", round/2)
	switch {
	case round == 0:
		return events.SessionOpened{Incarnation: "1", Title: "a session of the benchmark", Agent: "build", Model: "big"}
	case round == 1:
		return events.TurnStarted{Turn: "turn_1", Cause: events.CauseMessage}
	case round%2 == 0:
		return events.ToolStarted{Call: call, Turn: "turn_1", Name: "bash", Title: "go test ./...",
			Input: []byte(`{"command":"go test ./..."}`)}
	default:
		return events.ToolCompleted{Call: fmt.Sprintf("call_%024d", (round-1)/2),
			Output: []byte(`{"exit":0,"text":"ok  github.com/holdfast-dev/holdfast/pkg/session 0.412s"}`)}
	}
}

// drained waits until a consumer has no messages left.
func drained(ctx context.Context, b *bus.Bus, src consumer.Source) error {
	tick := time.NewTicker(lagPause)
	defer tick.Stop()
	for {
		lag, active, err := b.Consumers.Lag(ctx, src)
		if err == nil && lag == 0 && active != "" {
			return nil
		}
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// floorFolder does the least work that any implementation of the ledger must do.
type floorFolder struct {
	bus  *bus.Bus
	doc  []byte
	revs map[string]uint64
	left int
	done chan struct{}
}

// Takeover implements [consumer.Handler].
func (f *floorFolder) Takeover(context.Context) error { return nil }

// Batch implements [consumer.Handler].
func (f *floorFolder) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	keys := make([]string, 0, len(ms))
	seen := make(map[string]bool, len(ms))
	for _, m := range ms {
		if !seen[m.Subject] {
			seen[m.Subject] = true
			keys = append(keys, m.Subject)
		}
	}
	under := make([]bus.Pending, len(keys))
	for i, k := range keys {
		under[i] = f.bus.KV.StoreAsync(ctx, kv.State, "floor."+k, f.doc, f.revs[k])
	}
	for i, k := range keys {
		rev, err := under[i].Wait(ctx)
		if err != nil {
			return 0, err
		}
		f.revs[k] = rev
	}
	if f.left -= len(ms); f.left <= 0 {
		close(f.done)
	}
	return len(ms), nil
}

const (
	latencyRounds = 1000
	latencyWarm   = 50
)

// latency is part b.
func latency(ctx context.Context, r *report, size float64) error {
	n := scaled(latencyRounds, size, 100)
	led, doc, err := ledgerLatency(ctx, n)
	if err != nil {
		return err
	}
	floor, err := floorLatency(ctx, n, doc)
	if err != nil {
		return err
	}
	r.add("b", "append → document seen, p50", percentile(led, 0.50), "ms")
	r.add("b", "append → document seen, p99", percentile(led, 0.99), "ms")
	r.add("b", "publish → consume → put → watch, p50", percentile(floor, 0.50), "ms")
	r.add("b", "publish → consume → put → watch, p99", percentile(floor, 0.99), "ms")
	r.atMost("b", "p50 / floor's p50", percentile(led, 0.50)/percentile(floor, 0.50), "×", 2)
	return nil
}

// ledgerLatency also returns the last document, so that the floor writes the same number of bytes.
func ledgerLatency(ctx context.Context, n int) ([]time.Duration, []byte, error) {
	s, err := start(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	if err := s.ledger(ctx); err != nil {
		return nil, nil, err
	}
	took, err := roundTrips(ctx, s, n, events.SessionKey(foldRef(0)))
	if err != nil {
		return nil, nil, err
	}
	e, err := s.bus.KV.Load(ctx, kv.State, events.SessionKey(foldRef(0)))
	return took, e.Value, err
}

func floorLatency(ctx context.Context, n int, doc []byte) ([]time.Duration, error) {
	s, err := start(ctx, true)
	if err != nil {
		return nil, err
	}
	defer s.close()
	f := &floorFolder{bus: s.bus, doc: doc, revs: map[string]uint64{}, done: make(chan struct{}), left: n * 2}
	if err := s.run(ctx, func(ctx context.Context,
		b *bus.Bus) error {
		return b.Consumers.Consume(ctx, floorSource, f)
	}); err != nil {
		return nil, err
	}
	key := "floor." + s.bus.Cell().LogSubject(foldRef(0), events.WriterHarness)
	return roundTrips(ctx, s, n, key)
}

// roundTrips appends one event after the other. After each one it waits until a watcher has the result.
func roundTrips(ctx context.Context, s *suite, n int, key string) ([]time.Duration, error) {
	seen := make(chan time.Time, 16)
	err := s.run(ctx, func(ctx context.Context, b *bus.Bus) error {
		return b.KV.Watch(ctx, kv.State, []string{key}, func(u kv.Update) error {
			if !u.Ready {
				seen <- time.Now()
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	var last uint64
	for i := range n + latencyWarm {
		ev := event(s.bus, foldRef(0), foldFact(i))
		begin := time.Now()
		if last, err = s.bus.Log.Append(ctx, foldRef(0), events.WriterHarness, last, []events.Event{ev}); err != nil {
			return nil, err
		}
		select {
		case at := <-seen:
			if i >= latencyWarm {
				took = append(took, at.Sub(begin))
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return took, nil
}
