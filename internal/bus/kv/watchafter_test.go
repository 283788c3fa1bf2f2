package kv_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// watchingAfter watches the documents behind the present revision. The caller has read the given key behind it.
func watchingAfter(t *testing.T, b *bus.Bus, key string) <-chan kv.Update {
	t.Helper()
	return watchingAfterSetBack(t, b, key, 0)
}

// watchingAfterSetBack is watchingAfter at a broker whose clock was set back since the present revision.
func watchingAfterSetBack(t *testing.T, b *bus.Bus, key string, by time.Duration) <-chan kv.Update {
	t.Helper()
	after, err := b.KV.Mark(bustest.Background(t), kv.State)
	if err != nil {
		t.Fatal(err)
	}
	after.At = after.At.Add(by)
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

// TestWatchAfterWhoseEndIsNotRead: a bucket was created again, and its end cannot be read at first. The watch does not
// begin behind the revision of the old one: there nothing is delivered for a long time.
func TestWatchAfterWhoseEndIsNotRead(t *testing.T) {
	s := natstest.Start(t)
	writer, relay := natstest.Bus(t, s), natstest.NewRelay(t, s)
	b := bustest.BusAt(t, strings.TrimPrefix(relay.URL, "nats://"))
	_, js := bustest.Outsider(t, s)
	for _, key := range []string{"session.h.a", "session.h.b", "session.h.c"} {
		bustest.Store(t, writer, kv.State, key, "old", 0)
	}
	updates := watchingAfter(t, b, "session.h.b")
	bustest.Expect(t, updates, "ready")
	var spoiled atomic.Int64
	relay.Spoil(func(_, body string) bool {
		var q struct {
			Last string `json:"last_by_subj"`
		}
		is := json.Unmarshal([]byte(body), &q) == nil && q.Last == "$KV.hf_state.>"
		if is {
			spoiled.Add(1)
		}
		return is
	})
	if err := js.DeleteStream(bustest.Background(t), "KV_hf_state"); err != nil {
		t.Fatal(err)
	}
	if err := writer.Layout.Ensure(bustest.Background(t)); err != nil {
		t.Fatal(err)
	}
	bustest.Store(t, writer, kv.State, "session.h.a", "new", 0)
	before := spoiled.Load()
	natstest.Until(t, "the watch to look for the end of the new bucket", func() bool { return spoiled.Load() > before })
	relay.Spoil(nil)
	got := map[string]bool{}
	for range 2 {
		got[bustest.Text(bustest.Receive(t, updates, "what became of the old keys"))] = true
	}
	if !got["session.h.a=new"] || !got["session.h.b expired"] {
		t.Errorf("the watch shows %v", got)
	}
}

// TestWatchAfterAClockThatWasSetBack: what is behind the mark is reported, however old it seems to be; in a bucket that
// was created again, what became of the entries that the caller has read is.
func TestWatchAfterAClockThatWasSetBack(t *testing.T) {
	s := natstest.Start(t)
	writer, p := natstest.Bus(t, s), bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	_, js := bustest.Outsider(t, s)
	for _, key := range []string{"session.h.a", "session.h.b"} {
		bustest.Store(t, writer, kv.State, key, "old", 0)
	}
	updates := watchingAfterSetBack(t, b, "session.h.b", time.Hour)
	bustest.Expect(t, updates, "ready")
	bustest.Store(t, writer, kv.State, "session.h.new", "1", 0)
	bustest.Expect(t, updates, "session.h.new=1")

	p.Hold(true, true)
	if err := js.DeleteStream(bustest.Background(t), "KV_hf_state"); err != nil {
		t.Fatal(err)
	}
	if err := writer.Layout.Ensure(bustest.Background(t)); err != nil {
		t.Fatal(err)
	}
	bustest.Store(t, writer, kv.State, "session.h.b", "new", 0)
	p.Cut()
	p.Hold(false, false)
	bustest.Expect(t, updates, "session.h.b=new", "session.h.new expired")
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
