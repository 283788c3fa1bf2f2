package reconciler

import (
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Sizes of the benchmark: the sessions of one dead harness, and the calls open in each.
const (
	benchSessions = 10_000
	benchCalls    = 10
)

// BenchmarkRecovery recovers 100,000 open calls in 10,000 sessions of one dead harness, and appends the same facts
// without decisions, in commits of the same size. ratio is recovery's facts a second divided by the others.
func BenchmarkRecovery(b *testing.B) {
	for range b.N {
		b.StopTimer()
		s := natstest.Start(b)
		conn := natstest.Bus(b, s)
		c := &cell{t: b, ctx: b.Context(), b: conn}
		c.populate(benchSessions, benchCalls, "h", "17")
		c.populate(benchSessions, benchCalls, "raw", "17")
		facts := benchSessions * (benchCalls + 2)
		raw := c.raw("raw")
		r := c.recovering("h", "17")
		b.StartTimer()
		began := time.Now()
		p := r.newPass(events.Ref{Harness: "h"})
		if err := p.run(c.ctx); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		if p.factCount() != facts {
			b.Fatalf("%d facts, not %d", p.factCount(), facts)
		}
		b.ReportMetric(float64(facts)/took.Seconds(), "facts/s")
		b.ReportMetric(float64(facts)/raw.Seconds(), "raw-facts/s")
		b.ReportMetric(raw.Seconds()/took.Seconds(), "ratio")
	}
}

// BenchmarkDecide reads one such document, and decides on it.
func BenchmarkDecide(b *testing.B) {
	s := session.New(events.Ref{Harness: "h", Session: "s1"})
	c := &cell{t: b, b: natstest.Bus(b, natstest.Start(b))}
	s.Fold(&events.Commit{Ref: s.Ref(), Writer: events.WriterHarness, Seq: 1, At: time.Now().UTC(),
		Events: c.events(s.Ref(), opening("17", benchCalls), events.HarnessSource("h", "17"))})
	doc, err := s.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := session.Decode(doc)
		if err != nil {
			b.Fatal(err)
		}
		d, err := Decide(s, Input{Now: s.UpdatedAt, Owner: Owner{Liveness: Dead}}, nil)
		if err != nil || len(d.Facts) != benchCalls+2 {
			b.Fatalf("%d facts, %v", len(d.Facts), err)
		}
	}
}

// opening opens a session with calls.
func opening(incarnation string, calls int) []events.Fact {
	facts := []events.Fact{events.SessionOpened{Incarnation: incarnation},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}}
	for n := range calls {
		facts = append(facts, events.ToolStarted{Call: fmt.Sprint("call-", n), Turn: "t1", Name: "bash",
			Title: "make test"})
	}
	return facts
}

// recovering returns a reconciler that does not run, and that takes this process of a harness for dead.
func (c *cell) recovering(harness, incarnation string) *Reconciler {
	r, err := New(c.b, Default(), zerolog.Nop())
	if err != nil {
		c.t.Fatal(err)
	}
	now := time.Now()
	died := now.Add(-time.Hour)
	r.leases.start(died.Add(-time.Hour))
	r.leases.renewed(now)
	r.leases.view.put(harness, incarnation,
		&Seen{Exclusive: true, State: "ready", TTL: time.Second, Renewed: died, Ended: died})
	return r
}

// populate makes sessions with open calls, in the log and as documents.
func (c *cell) populate(sessions, calls int, harness, incarnation string) {
	var logged, stored []bus.Pending
	for i := range sessions {
		ref := events.Ref{Harness: harness, Session: fmt.Sprint("s", i)}
		facts := opening(incarnation, calls)
		logged = append(logged, c.b.Log.AppendAsync(c.ctx, ref, events.WriterHarness, 0,
			c.events(ref, facts, events.HarnessSource(harness, incarnation))))
		if len(logged) < 1000 && i < sessions-1 {
			continue
		}
		for k, p := range logged {
			seq, err := p.Wait(c.ctx)
			if err != nil {
				c.t.Fatal(err)
			}
			at := events.Ref{Harness: harness, Session: fmt.Sprint("s", i-len(logged)+1+k)}
			st := session.New(at)
			st.Fold(&events.Commit{Ref: at, Writer: events.WriterHarness, Seq: seq, At: time.Now(),
				Events: c.events(at, facts, events.HarnessSource(harness, incarnation))})
			doc, err := st.Encode()
			if err != nil {
				c.t.Fatal(err)
			}
			stored = append(stored, c.b.KV.StoreAsync(c.ctx, kv.State, events.SessionKey(at), doc, 0))
		}
		logged = logged[:0]
	}
	for _, p := range stored {
		if _, err := p.Wait(c.ctx); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cell) events(ref events.Ref, facts []events.Fact, source string) []events.Event {
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(c.b.NewID(), source, ref, 1, time.Now(), f)
	}
	return evs
}

// raw appends to each session what recovery would append, without a decision.
func (c *cell) raw(harness string) time.Duration {
	var refs []events.Ref
	var facts [][]events.Fact
	var after []uint64
	err := c.b.KV.List(c.ctx, kv.State, events.SessionKeys(harness), func(e kv.Entry) error {
		s, err := session.Decode(e.Value)
		if err != nil {
			return err
		}
		all := []events.Fact{events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: "17"}}
		for n := range benchCalls {
			all = append(all, events.ToolInterrupted{Call: fmt.Sprint("call-", n), Reason: events.ReasonOwnerLost,
				Outcome: events.OutcomeUnknown})
		}
		all = append(all, events.TurnInterrupted{Turn: "t1", Reason: events.ReasonOwnerLost})
		refs, after = append(refs, s.Ref()), append(after, s.Seq)
		facts = append(facts, all)
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	began := time.Now()
	pending := make([]bus.Pending, len(refs))
	for i := range refs {
		pending[i] = c.b.Log.AppendAsync(c.ctx, refs[i], events.WriterReconciler, after[i],
			c.events(refs[i], facts[i], events.ServiceSource(Name, "raw")))
	}
	for _, p := range pending {
		if _, err := p.Wait(c.ctx); err != nil {
			c.t.Fatal(err)
		}
	}
	return time.Since(began)
}
