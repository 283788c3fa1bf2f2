package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
)

const (
	sendRounds    = 2_000
	sendSessions  = 16
	sendContent   = `"now the tests, please; and tell me which of them are slow"`
	crossSessions = 10_000
	crossLimit    = 1_000 // tokens
	floorKey      = "floor.send"
)

// sends is part g.
func sends(ctx context.Context, r *report, size float64) error {
	took, floor, err := sendOnce(ctx, scaled(sendRounds, size, 50))
	if err != nil {
		return err
	}
	for _, p := range []float64{0.50, 0.99} {
		is := fmt.Sprintf("p%.0f", p*100)
		r.add("g", "send → its work is seen by the harness, "+is, percentile(took, p), "ms")
		r.add("g", "append → put → watch, "+is, percentile(floor, p), "ms")
		r.add("g", "send / floor, "+is, percentile(took, p)/percentile(floor, p), "×")
	}
	return crossing(ctx, r, scaled(crossSessions, size, 100))
}

// takes is a cell with a ledger and a compaction service, each on its own connection.
func takes(ctx context.Context, synced bool) (*suite, error) {
	s, err := start(ctx, synced)
	if err != nil {
		return nil, err
	}
	if err := s.ledger(ctx); err != nil {
		return s, err
	}
	return s, s.run(ctx, func(ctx context.Context, b *bus.Bus) error {
		c, err := compaction.New(b, compaction.Default(), zerolog.Nop())
		if err != nil {
			return err
		}
		return c.Run(ctx)
	})
}

// sendOnce sends messages one after the other, every write synced, and waits until the harness's view has each one. In
// between it appends a commit, puts a key and waits for the watcher.
func sendOnce(ctx context.Context, n int) (took, floor []time.Duration, err error) {
	s, err := takes(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	shown, put := make(chan string, 1), make(chan string, 1)
	if err := s.follow(ctx, kv.State, events.WorkKeys("bench"), shown, messageShown); err != nil {
		return nil, nil, err
	}
	if err := s.follow(ctx, kv.Leases, floorKey, put,
		func(e kv.Entry) string { return string(e.Value) }); err != nil {
		return nil, nil, err
	}
	after, err := opened(ctx, s.bus, sendSessions, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := drained(ctx, s.bus, ledger.Source(ledger.Default())); err != nil {
		return nil, nil, err
	}
	raw := events.Ref{Harness: "floor", Session: "s"}
	var seq, rev uint64
	for i := range n {
		ref, id := sessionOf(i%sendSessions), fmt.Sprint("m", i)
		began := time.Now()
		if err := s.bus.Services.Request(ctx, compaction.Name, "send", request.Send{Ref: ref, Message: id,
			Content: json.RawMessage(sendContent), By: "ada"}, nil); err != nil {
			return nil, nil, err
		}
		if err := seen(ctx, shown, id); err != nil {
			return nil, nil, err
		}
		took = append(took, time.Since(began))
		if err := complete(ctx, s.bus, ref, &after[i%sendSessions]); err != nil {
			return nil, nil, err
		}
		began = time.Now()
		if seq, err = s.bus.Log.Append(ctx, raw, events.WriterCompaction, seq,
			[]events.Event{event(s.bus, raw, events.MessageAccepted{Message: id,
				Content: json.RawMessage(sendContent)})}); err != nil {
			return nil, nil, err
		}
		if rev, err = s.bus.KV.Store(ctx, kv.Leases, floorKey, []byte(id), rev); err != nil {
			return nil, nil, err
		}
		if err := seen(ctx, put, id); err != nil {
			return nil, nil, err
		}
		floor = append(floor, time.Since(began))
	}
	return took, floor, nil
}

// follow passes on the entries of a filter, on its own connection.
func (s *suite) follow(ctx context.Context, bk kv.Bucket, filter string, to chan<- string,
	report func(kv.Entry) string) error {
	ready := make(chan struct{})
	err := s.run(ctx, func(ctx context.Context, b *bus.Bus) error {
		return b.KV.Watch(ctx, bk, []string{filter}, func(u kv.Update) error {
			if u.Ready {
				close(ready)
				return nil
			}
			if id := report(u.Entry); id != "" {
				select {
				case to <- id:
				case <-ctx.Done():
				}
			}
			return nil
		})
	})
	if err == nil {
		<-ready
	}
	return err
}

// messageShown returns the message of an entry in the harness's view.
func messageShown(e kv.Entry) string {
	var w struct{ Turn struct{ Message string } }
	if e.Deleted || json.Unmarshal(e.Value, &w) != nil {
		return ""
	}
	return w.Turn.Message
}

func seen(ctx context.Context, shown <-chan string, id string) error {
	for {
		select {
		case got := <-shown:
			if got == id {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func sessionOf(n int) events.Ref { return events.Ref{Harness: "bench", Session: fmt.Sprintf("s%d", n)} }

// opened opens n sessions, each with a turn that runs if it has to report usage, and returns their seqs.
func opened(ctx context.Context, b *bus.Bus, n int, used int64) ([]uint64, error) {
	p := &pipeline{bus: b, depth: pipelineDepth}
	for i := range n {
		r := sessionOf(i)
		evs := []events.Event{event(b, r, events.SessionOpened{Incarnation: "1", ContextLimit: crossLimit})}
		if used > 0 {
			evs = append(evs, event(b, r, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}))
		}
		if err := p.append(ctx, r, events.WriterHarness, 0, evs); err != nil {
			return nil, err
		}
	}
	_, err := p.flush(ctx)
	return p.seqs, err
}

// complete takes the delivered message and completes its turn, as a harness does.
func complete(ctx context.Context, b *bus.Bus, r events.Ref, after *uint64) error {
	commits, err := b.Log.Read(ctx, r, *after+1)
	if err != nil {
		return err
	}
	for _, c := range commits {
		*after = c.Seq
		for _, e := range c.Events {
			if f, ok := e.Fact.(events.TurnRequested); ok {
				*after, err = b.Log.Append(ctx, r, events.WriterHarness, c.Seq,
					[]events.Event{event(b, r, events.TurnStarted{Turn: f.Turn, Cause: f.Cause}),
						event(b, r, events.TurnCompleted{Turn: f.Turn})})
			}
		}
	}
	return err
}

// crossing lets many sessions cross the threshold together, and waits until each has a compaction request.
func crossing(ctx context.Context, r *report, n int) error {
	s, err := takes(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	after, err := opened(ctx, s.bus, n, crossLimit)
	if err != nil {
		return err
	}
	if err := drained(ctx, s.bus, ledger.Source(ledger.Default())); err != nil {
		return err
	}
	if err := drained(ctx, s.bus, compaction.Sources(s.bus)[0]); err != nil {
		return err
	}
	last := slices.Max(after)
	began := time.Now()
	p := &pipeline{bus: s.bus, depth: pipelineDepth}
	for i := range n {
		use := events.UsageReported{Turn: "t1", Model: "m", Tokens: events.Tokens{Input: crossLimit * 8 / 10}}
		if err := p.append(ctx, sessionOf(i), events.WriterHarness, after[i],
			[]events.Event{event(s.bus, sessionOf(i), use)}); err != nil {
			return err
		}
	}
	if _, err := p.flush(ctx); err != nil {
		return err
	}
	reported := time.Since(began)
	if err := commitsAfter(ctx, s.bus, last, 2*n); err != nil {
		return err
	}
	asked := time.Since(began)
	r.add("g", fmt.Sprintf("%d sessions cross the threshold within", n), reported.Seconds(), "s")
	r.add("g", "all have been asked to compact after", asked.Seconds(), "s")
	twice := map[string]bool{}
	err = s.bus.Log.Scan(ctx, last+1, func(c events.Commit) error {
		for _, e := range c.Events {
			if e.Kind == (events.CompactionRequested{}).Kind() && twice[c.Ref.String()] {
				return fmt.Errorf("%s was requested twice", c.Ref)
			} else if strings.HasPrefix(string(e.Kind), "compaction.") {
				twice[c.Ref.String()] = true
			}
		}
		return nil
	})
	if err == nil && len(twice) != n {
		err = fmt.Errorf("%d sessions of %d have a compaction request", len(twice), n)
	}
	return err
}
