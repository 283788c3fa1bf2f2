package pull_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestUnreadableHeader: a header that cannot be read does not make its commit unreadable: all readers see its facts and
// its guard, it is delivered, also where it is the first to be, and what comes behind it is delivered too.
func TestUnreadableHeader(t *testing.T) {
	for name := range bustest.OddHeaders(0) {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t)
			b := natstest.Bus(t, s)
			ctx := bustest.Within(t, bustest.Patience)
			body, err := events.EncodeBatch(bustest.Facts("odd"))
			if err != nil {
				t.Fatal(err)
			}
			bustest.RawPublish(t, s, "hf.log.h.s.harness", bustest.OddHeaders(0)[name], string(body))
			if _, err := b.Log.Append(ctx, bustest.Session, events.WriterHarness, 1,
				bustest.Facts("next")); err != nil {
				t.Fatalf("what follows: %v", err)
			}
			check := func(how string, c events.Commit) {
				t.Helper()
				if c.Err != nil || len(c.Events) != 1 || c.Events[0].ID != "odd" || !c.Guarded || c.Guard != 0 ||
					c.Seq != 1 {
					t.Errorf("%s: %+v", how, c)
				}
			}
			one, err := b.Log.Commit(ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			check("by its place", one)
			all, err := b.Log.Read(ctx, bustest.Session, 0)
			if err != nil || len(all) != 2 {
				t.Fatalf("read: %d, %v", len(all), err)
			}
			check("as the session's", all[0])
			n := 0
			if err := b.Log.Scan(ctx, 0, func(c events.Commit) error {
				if n++; n == 1 {
					check("in the log", c)
				}
				return nil
			}); err != nil || n != 2 {
				t.Fatalf("scan: %d, %v", n, err)
			}
			for _, c := range consumed(t, b, 2)[:1] {
				check("delivered", c)
			}
		})
	}
}

// consumed are the first commits of the log as a consumer is given them.
func consumed(t *testing.T, b *bus.Bus, n int) []events.Commit {
	t.Helper()
	ctx, cancel := context.WithCancel(bustest.Within(t, bustest.Patience))
	defer cancel()
	got := &bustest.Collector{B: b, N: n, Stop: cancel}
	if err := b.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "odd"}, got); err != nil &&
		!errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(got.All) < n {
		t.Fatalf("%d of %d delivered", len(got.All), n)
	}
	return got.All
}
