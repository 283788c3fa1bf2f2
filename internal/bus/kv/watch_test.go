package kv_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

func TestWatchShowsWhatIsThereThenReadyThenChanges(t *testing.T) {
	// it mostly waits
	t.Parallel()
	b := natstest.Bus(t, natstest.Start(t))
	bustest.Store(t, b, kv.State, "session.h.a", "1", 0)
	gone := bustest.Store(t, b, kv.State, "session.h.gone", "1", 0)
	bustest.Store(t, b, kv.State, "work.h.a", "1", 0)
	rev := bustest.Store(t, b, kv.State, "session.h.b", "1", 0)
	if err := b.KV.Delete(bustest.Background(t), kv.State, "session.h.gone", gone); err != nil {
		t.Fatal(err)
	}
	updates, stop := bustest.Watching(t, b, kv.State, "session.h.*", "blocker.>")
	bustest.Expect(t, updates, "session.h.a=1", "session.h.b=1", "ready")

	rev = bustest.Store(t, b, kv.State, "session.h.b", "2", rev)
	// unseen changes may be merged
	bustest.Expect(t, updates, "session.h.b=2")
	bustest.Store(t, b, kv.State, "work.h.b", "not watched", 0)
	if err := b.KV.Delete(bustest.Background(t), kv.State, "session.h.b", rev); err != nil {
		t.Fatal(err)
	}
	bustest.Expect(t, updates, "session.h.b deleted")
	doc := bustest.Store(t, b, kv.State, "session.h.c", "1", 0)
	view := kv.View{Key: "blocker.h.r.c.p", Value: []byte("x"), GuardKey: "session.h.c", GuardRev: doc,
		TTL: 4 * time.Second}
	if _, err := b.KV.StoreView(bustest.Background(t), view).Wait(bustest.Background(t)); err != nil {
		t.Fatal(err)
	}
	bustest.Expect(t, updates, "session.h.c=1", "blocker.h.r.c.p=x", "blocker.h.r.c.p expired")
	if err := stop(); err != nil {
		t.Fatalf("a watch whose context ends returns %v, want nil", err)
	}
}

// However long it takes to show what is there, Ready comes after it.
func TestWatchIsNotReadyBeforeAllIsShown(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const keys = 5000
	b := natstest.Bus(t, natstest.Start(t))
	var flying [keys]bus.Pending
	for i := range flying {
		flying[i] = b.KV.StoreAsync(bustest.Background(t), kv.State, fmt.Sprintf("session.h.%d", i), nil, 0)
	}
	for _, p := range flying {
		if _, err := p.Wait(bustest.Background(t)); err != nil {
			t.Fatal(err)
		}
	}
	shown, done := 0, errors.New("ready")
	err := b.KV.Watch(bustest.Background(t), kv.State, nil, func(u kv.Update) error {
		if u.Ready {
			return done
		}
		if shown++; shown == 1 {
			<-time.After(1100 * time.Millisecond)
		}
		return nil
	})
	if !errors.Is(err, done) || shown != keys {
		t.Errorf("%d of %d keys were shown before %v", shown, keys, err)
	}
}

func TestWatchOfNothingIsReadyAtOnce(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	updates, _ := bustest.Watching(t, b, kv.Leases)
	bustest.Expect(t, updates, "ready")
}

func TestWatchEndsWithTheErrorOfItsCallback(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	mine := errors.New("mine")
	err := b.KV.Watch(bustest.Background(t), kv.State, nil, func(kv.Update) error { return mine })
	if !errors.Is(err, mine) {
		t.Fatalf("got %v, want the callback's error", err)
	}
}

func TestWatchSurvivesABrokerRestartWithoutAGapOfTwoSeconds(t *testing.T) {
	const gapMax, busy = 2 * time.Second, 200 * time.Millisecond
	natstest.RetryStalled(t, busy, func() error {
		if gap := gapOfARestart(t); gap > gapMax {
			return fmt.Errorf("the first change was shown %s after the broker was back, want at most %s", gap, gapMax)
		}
		return nil
	})
}

// gapOfARestart is how long after the broker was back the first change was shown. Nothing is missed.
func gapOfARestart(t *testing.T) time.Duration {
	t.Helper()
	const keys = 50
	s := natstest.Start(t)
	b, writer := natstest.Bus(t, s), natstest.Bus(t, s)
	updates, _ := bustest.Watching(t, b, kv.State)
	bustest.Expect(t, updates, "ready")

	// One writer changes all keys without a pause, before, during and after the restart.
	ctx, cancel := context.WithCancel(bustest.Background(t))
	final, done := map[string]string{}, make(chan struct{})
	go func() {
		defer close(done)
		revs := map[string]uint64{}
		for i := 0; ctx.Err() == nil; i++ {
			key, value := fmt.Sprintf("session.h.%d", i%keys), fmt.Sprint(i)
			rev, err := writer.KV.Store(bustest.Background(t), kv.State, key, []byte(value), revs[key])
			if err != nil {
				t.Errorf("store %s: %v", key, err)
				return
			}
			revs[key], final[key] = rev, value
		}
	}()
	seen := map[string]string{}
	see := func(until func(kv.Update) bool) {
		for {
			u := bustest.Receive(t, updates, "a change")
			if u.Ready || u.Deleted {
				t.Fatalf("shown in the midst of changes: %s", bustest.Text(u))
			}
			seen[u.Key] = string(u.Value)
			if until(u) {
				return
			}
		}
	}
	see(func(kv.Update) bool { return len(seen) == keys })
	natstest.Restart(t, s)
	back := time.Now()
	see(func(u kv.Update) bool { return u.At.After(back) })
	gap := time.Since(back)
	t.Logf("first change shown %s after the broker was back", gap)
	clear(seen)
	see(func(kv.Update) bool { return len(seen) == keys })
	cancel()
	<-done
	bustest.Store(t, writer, kv.State, "session.h.end", "", 0)
	see(func(u kv.Update) bool { return u.Key == "session.h.end" })
	for key, want := range final {
		if got := seen[key]; got != want {
			t.Errorf("the last value of %s shown is %q, want %q", key, got, want)
		}
	}
	return gap
}

func TestWatchShowsAfterAnInterruptionOnlyWhatChanged(t *testing.T) {
	s := natstest.Start(t)
	writer, p := natstest.Bus(t, s), bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	kept := bustest.Store(t, writer, kv.State, "session.h.kept", "1", 0)
	changed := bustest.Store(t, writer, kv.State, "session.h.changed", "1", 0)
	deleted := bustest.Store(t, writer, kv.State, "session.h.deleted", "1", 0)
	updates, _ := bustest.Watching(t, b, kv.State)
	bustest.Expect(t, updates, "session.h.kept=1", "session.h.changed=1", "session.h.deleted=1", "ready")

	p.Hold(true, true)
	bustest.Store(t, writer, kv.State, "session.h.changed", "2", changed)
	if err := writer.KV.Delete(bustest.Background(t), kv.State, "session.h.deleted", deleted); err != nil {
		t.Fatal(err)
	}
	bustest.Store(t, writer, kv.State, "session.h.new", "1", 0)
	p.Cut()
	p.Hold(false, false)
	bustest.Expect(t, updates, "session.h.changed=2", "session.h.deleted deleted", "session.h.new=1")
	bustest.Store(t, writer, kv.State, "session.h.kept", "2", kept)
	bustest.Expect(t, updates, "session.h.kept=2")
}

func TestWatchShowsWhatVanishedWithItsBucket(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	bustest.Store(t, b, kv.State, "session.h.a", "old", 0)
	bustest.Store(t, b, kv.State, "session.h.b", "old", 0)
	updates, _ := bustest.Watching(t, b, kv.State)
	bustest.Expect(t, updates, "session.h.a=old", "session.h.b=old", "ready")

	if err := js.DeleteStream(bustest.Background(t), "KV_hf_state"); err != nil {
		t.Fatal(err)
	}
	if err := b.Layout.Ensure(bustest.Background(t)); err != nil {
		t.Fatal(err)
	}
	// at the same revision as the old one
	bustest.Store(t, b, kv.State, "session.h.a", "new", 0)
	got := map[string]bool{}
	for range 2 {
		got[bustest.Text(bustest.Receive(t, updates, "what became of the old keys"))] = true
	}
	if !got["session.h.b expired"] || !got["session.h.a=new"] && !got["session.h.a expired"] {
		t.Fatalf("the watch shows %v, want session.h.a=new and session.h.b expired", got)
	}
	// it started again before the key was back
	if got["session.h.a expired"] {
		bustest.Expect(t, updates, "session.h.a=new")
	}
}

// A key that is written while everything is read again moves behind what the count of messages at the start foresaw.
// It must not be called gone: a lease that is renewed all the time would look dead.
func TestWatchNeverCallsALivingKeyGone(t *testing.T) {
	const keys, rounds = 200, 25
	s := natstest.Start(t)
	b, writer := natstest.Bus(t, s), natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	ctx, cancel := context.WithCancel(bustest.Background(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		revs := map[string]uint64{}
		for ctx.Err() == nil {
			var flying [keys]bus.Pending
			for i := range keys {
				key := fmt.Sprintf("harness.h.%d", i)
				flying[i] = writer.KV.StoreAsync(bustest.Background(t), kv.Leases, key, []byte(time.Now().String()),
					revs[key])
			}
			for i, p := range flying {
				rev, err := p.Wait(bustest.Background(t))
				if err != nil {
					t.Errorf("store: %v", err)
					return
				}
				revs[fmt.Sprintf("harness.h.%d", i)] = rev
			}
		}
	}()
	updates, stop := bustest.Watching(t, b, kv.Leases)
	stream, err := js.Stream(bustest.Background(t), "KV_hf_leases")
	if err != nil {
		t.Fatal(err)
	}
	for range rounds {
		for range keys {
			bustest.Receive(t, updates, "a change")
		}
		interrupt(t, stream)
	}
	cancel()
	<-done
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for len(updates) > 0 {
		if u := <-updates; u.Deleted {
			t.Fatalf("%s is alive and was called gone", u.Key)
		}
	}
}

func TestWatchAsksTheLeaderBeforeItCallsAKeyGone(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	rev := bustest.Store(t, b, kv.Leases, "harness.h.deleted", "", 0)
	if err := b.KV.Delete(bustest.Background(t), kv.Leases, "harness.h.deleted", rev); err != nil {
		t.Fatal(err)
	}
	bustest.Store(t, b, kv.Leases, "harness.h.alive", "", 0)
	known := []kv.Entry{{Key: "harness.h.alive", Rev: 1}, {Key: "harness.h.deleted", Rev: 1},
		{Key: "harness.h.vanished", Rev: 1}}
	got := map[string]bool{}
	err := b.KV.CaughtUp(bustest.Background(t), kv.Leases, known, func(u kv.Update) error {
		got[bustest.Text(u)] = true
		return nil
	})
	if err != nil || len(got) != 2 || !got["harness.h.deleted expired"] || !got["harness.h.vanished expired"] {
		t.Errorf("called gone: %v, %v", got, err)
	}
}

// TestWatchOfAUserWhoMayNotReadEntries: what the watch of such a user does not see any more is gone. No leader can be
// asked, today or later.
func TestWatchOfAUserWhoMayNotReadEntries(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [ {user: a, password: a},
			{user: w, password: w, permissions: {publish: ["$JS.API.STREAM.INFO.>"], subscribe: ["_INBOX.>"]}}] } }`))
	natstest.Bus(t, s, func(c *bus.Config) { c.URL = bustest.As(s, "a") })
	b := bustest.BusAt(t, bustest.As(s, "w"))
	got := ""
	err := b.KV.CaughtUp(bustest.Within(t, bustest.Patience), kv.State, []kv.Entry{{Key: "session.h.a", Rev: 1}},
		func(u kv.Update) error {
			got += bustest.Text(u)
			return nil
		})
	if err != nil || got != "session.h.a expired" {
		t.Errorf("reported: %q, %v", got, err)
	}
}

// The broker never hears the first pull, and so never says a word.
func TestWatchNoticesSilence(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	bustest.Store(t, natstest.Bus(t, s), kv.State, "session.h.a", "1", 0)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	lost := p.Lose(true, `CONSUMER\.MSG\.(NEXT)\.KV_hf_state\.watch`, 1, "LOST")
	began, pulse := time.Now(), natstest.Feel(t)
	updates, _ := bustest.Watching(t, b, kv.State)
	bustest.Expect(t, updates, "session.h.a=1", "ready")
	bustest.Receive(t, lost, "the pull to be lost")
	if took := time.Since(began); took > 2*time.Second+pulse.Lost() {
		t.Errorf("silence was noticed after %s, want at most 2 s", took)
	}
}

func TestWatchNoticesALostChange(t *testing.T) {
	s := natstest.Start(t)
	writer, p := natstest.Bus(t, s), bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	updates, _ := bustest.Watching(t, b, kv.State)
	bustest.Expect(t, updates, "ready")
	lost := p.Lose(false, `HMSG \$KV\.\S+ (\d+) `, 1, "99999999")
	bustest.Store(t, writer, kv.State, "session.h.a", "1", 0)
	bustest.Receive(t, lost, "the change to be lost")
	bustest.Store(t, writer, kv.State, "session.h.b", "1", 0)
	bustest.Expect(t, updates, "session.h.a=1", "session.h.b=1")
}

// interrupt takes the consumers of all watches away.
func interrupt(t testing.TB, stream jetstream.Stream) {
	t.Helper()
	names := stream.ConsumerNames(bustest.Background(t))
	for name := range names.Name() {
		if strings.HasPrefix(name, "watch-") {
			if err := stream.DeleteConsumer(bustest.Background(t), name); err != nil &&
				!errors.Is(err, jetstream.ErrConsumerNotFound) {
				t.Fatal(err)
			}
		}
	}
	if names.Err() != nil {
		t.Fatal(names.Err())
	}
}
