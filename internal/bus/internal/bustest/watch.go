package bustest

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
)

// Watching runs a watch and gives its updates on a channel; the returned function ends it and returns its error.
func Watching(t testing.TB, b *bus.Bus, bk kv.Bucket, filters ...string) (<-chan kv.Update, func() error) {
	t.Helper()
	return WatchingBy(t, func(ctx context.Context, fn func(kv.Update) error) error {
		return b.KV.Watch(ctx, bk, filters, fn)
	})
}

// WatchingBy is [Watching] with any watch.
func WatchingBy(t testing.TB, watch func(context.Context, func(kv.Update) error) error) (<-chan kv.Update,
	func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(Background(t))
	updates, done := make(chan kv.Update, 100_000), make(chan error, 1)
	go func() {
		done <- watch(ctx, func(u kv.Update) error {
			updates <- u
			return nil
		})
	}()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return updates, stop
}

// Store stores an entry of a bucket and returns its revision.
func Store(t testing.TB, b *bus.Bus, bk kv.Bucket, key, value string, rev uint64) uint64 {
	t.Helper()
	rev, err := b.KV.Store(Background(t), bk, key, []byte(value), rev)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// Text is an update as a test reads it.
func Text(u kv.Update) string {
	switch {
	case u.Ready:
		return "ready"
	case u.Expired:
		return u.Key + " expired"
	case u.Deleted:
		return u.Key + " deleted"
	default:
		return u.Key + "=" + string(u.Value)
	}
}

// Expect waits for these updates, in this order.
func Expect(t testing.TB, updates <-chan kv.Update, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := Text(Receive(t, updates, w)); got != w {
			t.Fatalf("the watch shows %q, want %q", got, w)
		}
	}
}
