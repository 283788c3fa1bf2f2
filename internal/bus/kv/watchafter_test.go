package kv_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// watchingAfter watches the documents behind the present revision. The caller has read the given key behind it.
func watchingAfter(t *testing.T, b *bus.Bus, key string) <-chan kv.Update {
	t.Helper()
	after, err := b.KV.Mark(bustest.Background(t), kv.State)
	if err != nil {
		t.Fatal(err)
	}
	e, err := b.KV.Load(bustest.Background(t), kv.State, key)
	if err != nil {
		t.Fatal(err)
	}
	updates, _ := bustest.WatchingBy(t, func(ctx context.Context, fn func(kv.Update) error) error {
		return b.KV.WatchAfter(ctx, kv.State, []string{"session.h.*"}, after, []kv.Entry{e}, fn)
	})
	return updates
}

// TestWatchAfter: a watch behind a revision reports no older entry, not even when it begins again.
func TestWatchAfter(t *testing.T) {
	s := natstest.Start(t)
	writer, p := natstest.Bus(t, s), bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	old := bustest.Store(t, writer, kv.State, "session.h.old", "1", 0)
	bustest.Store(t, writer, kv.State, "session.h.older", "1", 0)
	known := bustest.Store(t, writer, kv.State, "session.h.known", "1", 0)
	updates := watchingAfter(t, b, "session.h.known")
	bustest.Expect(t, updates, "ready")
	bustest.Store(t, writer, kv.State, "session.h.new", "1", 0)
	old = bustest.Store(t, writer, kv.State, "session.h.old", "2", old)
	bustest.Expect(t, updates, "session.h.new=1", "session.h.old=2")

	p.Hold(true, true)
	for key, rev := range map[string]uint64{"session.h.known": known, "session.h.old": old} {
		if err := writer.KV.Delete(bustest.Background(t), kv.State, key, rev); err != nil {
			t.Fatal(err)
		}
	}
	p.Cut()
	p.Hold(false, false)
	got := map[string]bool{}
	for range 2 {
		got[bustest.Text(bustest.Receive(t, updates, "the deletions"))] = true
	}
	if !got["session.h.known deleted"] || !got["session.h.old deleted"] {
		t.Errorf("after the interruption: %v", got)
	}
	bustest.Store(t, writer, kv.State, "session.h.last", "1", 0)
	bustest.Expect(t, updates, "session.h.last=1")
}

// TestWatchAfterWithTheBucket: entries of a bucket that was created again are behind no revision of the old one.
func TestWatchAfterWithTheBucket(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	for _, key := range []string{"session.h.a", "session.h.b", "session.h.c"} {
		bustest.Store(t, b, kv.State, key, "old", 0)
	}
	updates := watchingAfter(t, b, "session.h.b")
	bustest.Expect(t, updates, "ready")
	if err := js.DeleteStream(bustest.Background(t), "KV_hf_state"); err != nil {
		t.Fatal(err)
	}
	if err := b.Layout.Ensure(bustest.Background(t)); err != nil {
		t.Fatal(err)
	}
	bustest.Store(t, b, kv.State, "session.h.a", "new", 0)
	got := map[string]bool{}
	for range 2 {
		got[bustest.Text(bustest.Receive(t, updates, "what became of the old keys"))] = true
	}
	if !got["session.h.a=new"] || !got["session.h.b expired"] {
		t.Errorf("the watch shows %v", got)
	}
}

// TestWatchAfterWithoutItsEnd: an end that is gone, as that of an entry which has expired, is no new bucket.
func TestWatchAfterWithoutItsEnd(t *testing.T) {
	s := natstest.Start(t)
	writer, p := natstest.Bus(t, s), bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	_, js := bustest.Outsider(t, s)
	bustest.Store(t, writer, kv.State, "session.h.old", "1", 0)
	bustest.Store(t, writer, kv.State, "session.h.known", "1", 0)
	bustest.Store(t, writer, kv.State, "session.h.last", "1", 0)
	updates := watchingAfter(t, b, "session.h.known")
	bustest.Expect(t, updates, "ready")
	p.Hold(true, true)
	stream, err := js.Stream(bustest.Background(t), "KV_hf_state")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"session.h.known", "session.h.last"} {
		purge := jetstream.WithPurgeSubject("$KV.hf_state." + key)
		if err := stream.Purge(bustest.Background(t), purge); err != nil {
			t.Fatal(err)
		}
	}
	p.Cut()
	p.Hold(false, false)
	bustest.Expect(t, updates, "session.h.known expired")
	bustest.Store(t, writer, kv.State, "session.h.new", "1", 0)
	bustest.Expect(t, updates, "session.h.new=1")
}
