package bus_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestNamesCannotBeComputed: consumers, reply subjects, batches, leases and connections have random names. No two of
// one kind share their first characters, and no name shares them with the id of an event, which other clients can read.
func TestNamesCannotBeComputed(t *testing.T) {
	s := natstest.Start(t)
	nc, _ := bustest.Outsider(t, s)
	var mu sync.Mutex
	// by kind
	seen := map[string]map[string]bool{}
	note := func(kind, name string) {
		mu.Lock()
		defer mu.Unlock()
		if seen[kind] == nil {
			seen[kind] = map[string]bool{}
		}
		if name != "" {
			seen[kind][name] = true
		}
	}
	if _, err := nc.Subscribe(">", func(m *nats.Msg) {
		words := strings.Split(m.Subject, ".")
		switch {
		case strings.HasPrefix(m.Subject, "$JS.API.CONSUMER.CREATE."):
			kind, name, _ := strings.Cut(words[5], "-")
			note(kind, name)
		case strings.HasPrefix(m.Subject, "$JS.API.CONSUMER.MSG.NEXT."):
			note("pull", strings.Split(m.Reply, ".")[1])
		}
		note("batch", m.Header.Get("Nats-Batch-Id"))
		note("lease", m.Header.Get("Hf-Lease"))
	}); err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	for range 2 {
		b := natstest.Bus(t, s, bustest.Together)
		note("instance", b.Instance())
		note("event", b.NewID())
		useNames(t, b)
	}
	kinds := []string{"read", "watch", "pull", "batch", "lease", "instance"}
	natstest.Until(t, "two names of each kind", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !slices.ContainsFunc(kinds, func(kind string) bool { return len(seen[kind]) < 2 })
	})
	mu.Lock()
	defer mu.Unlock()
	ids := seen["event"]
	for _, kind := range kinds {
		begins := map[string]string{}
		for id := range ids {
			begins[id[:8]] = "the event " + id
		}
		for name := range seen[kind] {
			if len(name) < 22 {
				t.Errorf("%s %s is short", kind, name)
				continue
			}
			if other, known := begins[name[:8]]; known {
				t.Errorf("%s %s begins as %s does", kind, name, other)
			}
			begins[name[:8]] = name
		}
	}
}

// useNames makes a connection use each kind of name.
func useNames(t *testing.T, b *bus.Bus) {
	t.Helper()
	ctx, cancel := context.WithCancel(bustest.Background(t))
	defer cancel()
	bustest.Acquire(t, b, "harness.h."+b.Instance(), bustest.Patience)
	var under []bus.Pending
	// together, as batches
	for i := range 200 {
		one := events.Ref{Harness: "h", Session: fmt.Sprint(b.Instance(), i)}
		under = append(under, b.Log.AppendAsync(ctx, one, events.WriterHarness, 0, []events.Event{
			bustest.Fact(b.NewID(), one)}))
	}
	for _, p := range under {
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Log.Scan(ctx, 0, func(events.Commit) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Log.Heads(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if err := b.KV.Watch(ctx, kv.Leases, nil, func(u kv.Update) error {
		if u.Ready {
			cancel()
		}
		return nil
	}); ctx.Err() == nil {
		t.Fatal(err)
	}
}
