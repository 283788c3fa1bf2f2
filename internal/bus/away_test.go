package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// calls are all that can be asked of a broker, each with what it needs.
func calls(b *bus.Bus, lease *bus.Lease) map[string]func(context.Context) error {
	anything := func(bus.Entry) error { return nil }
	waited := func(ctx context.Context, p bus.Pending) error { _, err := p.Wait(ctx); return err }
	return map[string]func(context.Context) error{
		"append": func(ctx context.Context) error {
			_, err := b.Append(ctx, session, events.WriterHarness, 1, facts("x"))
			return err
		},
		"read":   func(ctx context.Context) error { _, err := b.Read(ctx, session, 0); return err },
		"commit": func(ctx context.Context) error { _, err := b.Commit(ctx, 1); return err },
		"scan": func(ctx context.Context) error {
			return b.Scan(ctx, 0, func(events.Commit) error { return nil })
		},
		"scan messages": func(ctx context.Context) error {
			return b.ScanMessages(ctx, 0, func(bus.Message) error { return nil })
		},
		"since": func(ctx context.Context) error {
			return b.Since(ctx, "h", time.Unix(0, 0), func(events.Commit) error { return nil })
		},
		"now":          func(ctx context.Context) error { _, err := b.Now(ctx); return err },
		"last":         func(ctx context.Context) error { _, err := b.LastSeq(ctx); return err },
		"purge":        func(ctx context.Context) error { return b.PurgeSession(ctx, session, 1) },
		"head":         func(ctx context.Context) error { _, err := b.Head(ctx, session); return err },
		"heads":        func(ctx context.Context) error { _, err := b.Heads(ctx, ""); return err },
		"heads of one": func(ctx context.Context) error { _, err := b.Heads(ctx, "h"); return err },
		"feed": func(ctx context.Context) error {
			return waited(ctx, b.Feed(ctx, bus.Fed{Ref: session, Seq: 1, Events: facts("x")}))
		},
		"park": func(ctx context.Context) error {
			return b.Park(ctx, bus.Parked{Why: "malformed", Ref: session, Seq: 1, Reason: "x"})
		},
		"load": func(ctx context.Context) error { _, err := b.Load(ctx, bus.State, key); return err },
		"store": func(ctx context.Context) error {
			_, err := b.Store(ctx, bus.State, key, []byte("x"), 1)
			return err
		},
		"delete": func(ctx context.Context) error { return b.Delete(ctx, bus.State, key, 1) },
		"documents": func(ctx context.Context) error {
			_, err := b.StoreDocs(ctx, []bus.Doc{{Key: key, Value: []byte("x")}})
			return err
		},
		"view": func(ctx context.Context) error {
			return waited(ctx, b.StoreView(ctx, bus.View{Key: "work.h.s", Value: []byte("x")}))
		},
		"list": func(ctx context.Context) error { return b.List(ctx, bus.State, ">", anything) },
		"lag": func(ctx context.Context) error {
			_, _, err := b.Lag(ctx, bus.Source{Stream: bus.LogStream, Durable: "x"})
			return err
		},
		"acknowledged": func(ctx context.Context) error {
			_, err := b.Acked(ctx, bus.Source{Stream: bus.LogStream, Durable: "x"})
			return err
		},
		"usage":     func(ctx context.Context) error { _, _, err := b.LogUsage(ctx); return err },
		"raise":     func(ctx context.Context) error { _, err := b.RaiseLogLimit(ctx); return err },
		"inspect":   func(ctx context.Context) error { _, err := b.Inspect(ctx); return err },
		"strangers": func(ctx context.Context) error { _, err := b.Strangers(ctx, nil); return err },
		"ensure":    func(ctx context.Context) error { return b.Ensure(ctx) },
		"put object": func(ctx context.Context) error {
			_, err := b.PutObject(ctx, session, []byte("x"))
			return err
		},
		"has object":    func(ctx context.Context) error { return b.HasObject(ctx, "x") },
		"object":        func(ctx context.Context) error { _, err := b.Object(ctx, "x"); return err },
		"objects":       func(ctx context.Context) error { return b.Objects(ctx, func(string) error { return nil }) },
		"delete object": func(ctx context.Context) error { return b.DeleteObject(ctx, "x") },
		"timer": func(ctx context.Context) error {
			return b.SetTimer(ctx, bus.Timer{What: "x", Ref: session, Due: time.Now().Add(time.Hour), Seq: 1})
		},
		"cancel timer": func(ctx context.Context) error { return b.CancelTimer(ctx, "x", session) },
		"ticket":       func(ctx context.Context) error { _, err := b.Ticket(ctx, "h"); return err },
		"lease": func(ctx context.Context) error {
			_, err := b.AcquireLease(ctx, "harness.h.9", nil, time.Minute)
			return err
		},
		"renew":   func(ctx context.Context) error { return lease.Renew(ctx, []byte("x")) },
		"release": func(ctx context.Context) error { return lease.Release(ctx) },
		"request": func(ctx context.Context) error { return b.Request(ctx, "ledger", "list", nil, nil) },
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
		"closed": func(b *bus.Bus, _ func()) { b.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t)
			b := natstest.Bus(t, s)
			mustAppend(t, b, session, 0, "a")
			lease, err := b.AcquireLease(within(t, patience), "harness.h.1", []byte("x"), time.Minute)
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
	b := busAt(t, s.URL())
	all := calls(b, nil)
	for _, name := range []string{"renew", "release", "request", "ensure", "inspect", "strangers"} { // no stream
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
	ctx := within(t, patience)
	seq := uint64(0)
	for i := range 40 {
		seq = mustAppend(t, b, session, seq, fmt.Sprint("e", i))
	}
	if _, err := b.Store(ctx, bus.State, key, []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PutObject(ctx, session, []byte("x")); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	n := 0
	for name, do := range map[string]func() error{
		"each": func() error {
			return b.Each(ctx, session, 0, func(events.Commit) error { n++; return enough })
		},
		"the last ones": func() error {
			return b.Each(ctx, session, seq, func(events.Commit) error { n++; return enough })
		},
		"scan": func() error { return b.Scan(ctx, 0, func(events.Commit) error { n++; return enough }) },
		"messages": func() error {
			return b.ScanMessages(ctx, 0, func(bus.Message) error { n++; return enough })
		},
		"since": func() error {
			return b.Since(ctx, "h", time.Unix(0, 0), func(events.Commit) error { n++; return enough })
		},
		"list": func() error {
			return b.List(ctx, bus.State, ">", func(bus.Entry) error { n++; return enough })
		},
		"objects": func() error { return b.Objects(ctx, func(string) error { n++; return enough }) },
		"watch": func() error {
			return b.Watch(ctx, bus.State, nil, func(bus.Update) error { n++; return enough })
		},
	} {
		n = 0
		if err := do(); !errors.Is(err, enough) || fmt.Sprintf("%T", err) != fmt.Sprintf("%T", enough) || n != 1 {
			t.Errorf("%s: %v after %d", name, err, n)
		}
	}
}

// discard handles batches by dropping them.
type discard struct{}

// Takeover implements [bus.Handler].
func (discard) Takeover(context.Context) error { return nil }

// Batch implements [bus.Handler].
func (discard) Batch(_ context.Context, ms []bus.Message) (int, error) { return len(ms), nil }

// TestNothingIsFollowedOverAClosedConnection: a call that runs until its context ends returns an error at once if the
// connection was closed.
func TestNothingIsFollowedOverAClosedConnection(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	b.Kill()
	ctx := within(t, patience)
	for name, do := range map[string]func() error{
		"nudges":   func() error { return b.OnNudge(ctx, "h", func(string, uint64) {}) },
		"progress": func() error { return b.OnProgress(ctx, func(events.Ref) {}) },
		"watch":    func() error { return b.Watch(ctx, bus.State, nil, func(bus.Update) error { return nil }) },
		"follow":   func() error { return b.Follow(ctx, "h", func(uint64) {}, func(bus.Message) {}) },
		"serve":    func() error { return b.Serve(ctx, "test", "1.0.0", "x", nil) },
		"consume":  func() error { return b.Consume(ctx, bus.Source{Stream: bus.LogStream, Durable: "x"}, discard{}) },
	} {
		done := make(chan error, 1)
		go func() { done <- do() }()
		if err := receive(t, done, name); err == nil {
			t.Errorf("%s ends without an error", name)
		}
	}
	if err := b.Request(ctx, "test", "x", make(chan int), nil); err == nil {
		t.Error("a request that cannot be encoded is sent")
	}
}

// TestHintsThatSayNothing: a nudge or a sign of life that cannot be read is left out, and those behind it are heard.
func TestHintsThatSayNothing(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := outsider(t, s)
	heard := make(chan string, 10)
	if err := b.OnNudge(within(t, patience), "h", func(id string, _ uint64) { heard <- id }); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"no JSON", "{}", `{"session":"","seq":3}`} {
		if err := nc.Publish(b.Cell().NudgeSubject("h"), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	b.Nudge(session, 7)
	if got := receive(t, heard, "a nudge"); got != session.Session {
		t.Errorf("heard %q first", got)
	}
}
