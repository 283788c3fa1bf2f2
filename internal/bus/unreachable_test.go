package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/internal/bus/park"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// calls are all that can be asked of a broker, each with what it needs.
func calls(b *bus.Bus, lease *lease.Lease) map[string]func(context.Context) error {
	anything := func(kv.Entry) error { return nil }
	waited := func(ctx context.Context, p bus.Pending) error { _, err := p.Wait(ctx); return err }
	return map[string]func(context.Context) error{
		"append": func(ctx context.Context) error {
			_, err := b.Log.Append(ctx, bustest.Session, events.WriterHarness, 1, bustest.Facts("x"))
			return err
		},
		"read":   func(ctx context.Context) error { _, err := b.Log.Read(ctx, bustest.Session, 0); return err },
		"commit": func(ctx context.Context) error { _, err := b.Log.Commit(ctx, 1); return err },
		"scan": func(ctx context.Context) error {
			return b.Log.Scan(ctx, 0, func(events.Commit) error { return nil })
		},
		"scan messages": func(ctx context.Context) error {
			return b.Log.ScanMessages(ctx, 0, func(bus.Message) error { return nil })
		},
		"since": func(ctx context.Context) error {
			return b.Log.Since(ctx, "h", time.Unix(0, 0), func(events.Commit) error { return nil })
		},
		"now":          func(ctx context.Context) error { _, err := b.Clock.Now(ctx); return err },
		"last":         func(ctx context.Context) error { _, err := b.Log.LastSeq(ctx); return err },
		"purge":        func(ctx context.Context) error { return b.Log.PurgeSession(ctx, bustest.Session, 1) },
		"head":         func(ctx context.Context) error { _, err := b.Log.Head(ctx, bustest.Session); return err },
		"heads":        func(ctx context.Context) error { _, err := b.Log.Heads(ctx, ""); return err },
		"heads of one": func(ctx context.Context) error { _, err := b.Log.Heads(ctx, "h"); return err },
		"feed": func(ctx context.Context) error {
			return waited(ctx, b.Log.Feed(ctx, log.Fed{Ref: bustest.Session, Seq: 1, Events: bustest.Facts("x")}))
		},
		"park": func(ctx context.Context) error {
			return b.Parking.Park(ctx, park.Parked{Why: "malformed", Ref: bustest.Session, Seq: 1, Reason: "x"})
		},
		"load": func(ctx context.Context) error { _, err := b.KV.Load(ctx, kv.State, bustest.Key); return err },
		"store": func(ctx context.Context) error {
			_, err := b.KV.Store(ctx, kv.State, bustest.Key, []byte("x"), 1)
			return err
		},
		"delete": func(ctx context.Context) error { return b.KV.Delete(ctx, kv.State, bustest.Key, 1) },
		"documents": func(ctx context.Context) error {
			_, err := b.KV.StoreDocs(ctx, []kv.Doc{{Key: bustest.Key, Value: []byte("x")}})
			return err
		},
		"view": func(ctx context.Context) error {
			return waited(ctx, b.KV.StoreView(ctx, kv.View{Key: "work.h.s", Value: []byte("x")}))
		},
		"list": func(ctx context.Context) error { return b.KV.List(ctx, kv.State, ">", anything) },
		"lag": func(ctx context.Context) error {
			_, _, err := b.Consumers.Lag(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "x"})
			return err
		},
		"acknowledged": func(ctx context.Context) error {
			_, err := b.Consumers.Acked(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "x"})
			return err
		},
		"usage":     func(ctx context.Context) error { _, _, err := b.Log.Usage(ctx); return err },
		"raise":     func(ctx context.Context) error { _, err := b.Log.RaiseLimit(ctx); return err },
		"inspect":   func(ctx context.Context) error { _, err := b.Layout.Inspect(ctx); return err },
		"strangers": func(ctx context.Context) error { _, err := b.Consumers.Strangers(ctx, nil); return err },
		"ensure":    func(ctx context.Context) error { return b.Layout.Ensure(ctx) },
		"put object": func(ctx context.Context) error {
			_, err := b.Objects.Put(ctx, bustest.Session, []byte("x"))
			return err
		},
		"has object": func(ctx context.Context) error { return b.Objects.Has(ctx, "x") },
		"object":     func(ctx context.Context) error { _, err := b.Objects.Get(ctx, "x"); return err },
		"objects": func(ctx context.Context) error {
			return b.Objects.Each(ctx,
				func(string) error { return nil })
		},
		"delete object": func(ctx context.Context) error { return b.Objects.Delete(ctx, "x") },
		"timer": func(ctx context.Context) error {
			return b.Timers.Set(ctx, timer.Timer{What: "x", Ref: bustest.Session, Due: time.Now().Add(time.Hour),
				Seq: 1})
		},
		"cancel timer": func(ctx context.Context) error { return b.Timers.Cancel(ctx, "x", bustest.Session) },
		"ticket":       func(ctx context.Context) error { _, err := b.Leases.Ticket(ctx, "h", 0); return err },
		"lease": func(ctx context.Context) error {
			_, err := b.Leases.Acquire(ctx, "harness.h.9", nil, time.Minute)
			return err
		},
		"renew":   func(ctx context.Context) error { return lease.Renew(ctx, []byte("x")) },
		"release": func(ctx context.Context) error { return lease.Release(ctx) },
		"request": func(ctx context.Context) error { return b.Services.Request(ctx, "ledger", "list", nil, nil) },
	}
}

// each calls all of them at the same time, and returns what each returned.
func each(t *testing.T, all map[string]func(context.Context) error) map[string]error {
	t.Helper()
	var mu sync.Mutex
	var wait sync.WaitGroup
	got := map[string]error{}
	for name, do := range all {
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			err := do(ctx)
			mu.Lock()
			defer mu.Unlock()
			got[name] = err
		})
	}
	wait.Wait()
	return got
}

// TestNothingSucceedsWithoutABroker: every call while the broker is away, or after the connection was closed, fails as
// unreachable at its time limit, and never returns an empty answer.
func TestNothingSucceedsWithoutABroker(t *testing.T) {
	for name, lose := range map[string]func(*bus.Bus, func()){
		"away":   func(b *bus.Bus, shutdown func()) { shutdown() },
		"closed": func(b *bus.Bus, _ func()) { b.Abort() },
	} {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t)
			b := natstest.Bus(t, s)
			bustest.MustAppend(t, b, bustest.Session, 0, "a")
			lease, err := b.Leases.Acquire(bustest.Within(t, bustest.Patience), "harness.h.1", []byte("x"), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			lose(b, func() {
				s.Shutdown()
				natstest.Until(t, "the loss to be noticed", func() bool { return !b.Connected() })
			})
			for what, err := range each(t, calls(b, lease)) {
				if !errors.Is(err, bus.ErrUnreachable) {
					t.Errorf("%s: %v, want ErrUnreachable", what, err)
				}
			}
		})
	}
}

// TestNothingSucceedsInAnEmptyCell: in a cell that was not set up, what is asked is not found, and is never taken
// for an empty answer.
func TestNothingSucceedsInAnEmptyCell(t *testing.T) {
	s := natstest.Start(t)
	b := bustest.BusAt(t, s.URL())
	all := calls(b, nil)
	// no stream
	for _, name := range []string{"renew", "release", "request", "ensure", "inspect", "strangers"} {
		delete(all, name)
	}
	for what, err := range each(t, all) {
		if err == nil {
			t.Errorf("%s succeeds", what)
		}
	}
}

// TestErrorsOfCallbacks: an error of the caller's function ends the reading, and is returned unchanged.
func TestErrorsOfCallbacks(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	seq := uint64(0)
	for i := range 40 {
		seq = bustest.MustAppend(t, b, bustest.Session, seq, fmt.Sprint("e", i))
	}
	if _, err := b.KV.Store(ctx, kv.State, bustest.Key, []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Objects.Put(ctx, bustest.Session, []byte("x")); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	n := 0
	for name, do := range map[string]func() error{
		"each": func() error {
			return b.Log.Each(ctx, bustest.Session, 0, func(events.Commit) error { n++; return enough })
		},
		"the last ones": func() error {
			return b.Log.Each(ctx, bustest.Session, seq, func(events.Commit) error { n++; return enough })
		},
		"scan": func() error { return b.Log.Scan(ctx, 0, func(events.Commit) error { n++; return enough }) },
		"messages": func() error {
			return b.Log.ScanMessages(ctx, 0, func(bus.Message) error { n++; return enough })
		},
		"since": func() error {
			return b.Log.Since(ctx, "h", time.Unix(0, 0), func(events.Commit) error { n++; return enough })
		},
		"list": func() error {
			return b.KV.List(ctx, kv.State, ">", func(kv.Entry) error { n++; return enough })
		},
		"objects": func() error { return b.Objects.Each(ctx, func(string) error { n++; return enough }) },
		"watch": func() error {
			return b.KV.Watch(ctx, kv.State, nil, func(kv.Update) error { n++; return enough })
		},
	} {
		n = 0
		if err := do(); !errors.Is(err, enough) || fmt.Sprintf("%T", err) != fmt.Sprintf("%T", enough) || n != 1 {
			t.Errorf("%s: %v after %d", name, err, n)
		}
	}
}
