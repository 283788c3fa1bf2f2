package natstest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Session returns a session folded from its log.
func Session(t testing.TB, b *bus.Bus, r events.Ref) *session.State {
	t.Helper()
	s := session.New(r)
	commits, err := b.Log.Read(t.Context(), r, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range commits {
		s.Fold(&commits[i])
	}
	return s
}

// UntilSession waits until the log of a session meets a condition, and returns the session. A test that waits in vain
// prints the log.
func UntilSession(t testing.TB, b *bus.Bus, r events.Ref, what string, ok func(*session.State) bool) *session.State {
	t.Helper()
	var s *session.State
	met := false
	defer func() {
		if !met {
			logSession(t, b, r)
		}
	}()
	Until(t, r.Session+": "+what, func() bool { s = Session(t, b, r); return ok(s) })
	met = true
	return s
}

// logSession prints the log of a session, one fact on each line.
func logSession(t testing.TB, b *bus.Bus, r events.Ref) {
	t.Helper()
	commits, err := b.Log.Read(context.Background(), r, 0)
	if err != nil {
		t.Logf("the log of %s/%s: %v", r.Harness, r.Session, err)
		return
	}
	for i := range commits {
		for _, e := range commits[i].Events {
			t.Logf("%d %s %s epoch %d %s %s", commits[i].Seq, e.Time.Format("05.000"), commits[i].Writer, e.Epoch,
				e.Kind, e.Data)
		}
	}
}

// Append appends facts of a harness to a session as one commit. It tries again when another writer was first.
func Append(t testing.TB, b *bus.Bus, r events.Ref, incarnation string, facts ...events.Fact) {
	t.Helper()
	for {
		s := Session(t, b, r)
		epoch := max(s.Epoch, 1)
		evs := make([]events.Event, len(facts))
		for i, f := range facts {
			if _, claims := f.(events.SessionClaimed); claims {
				epoch++
			}
			evs[i] = events.New(b.NewID(), events.HarnessSource(r.Harness, incarnation), r, epoch, time.Now(), f)
		}
		_, err := b.Log.Append(t.Context(), r, events.WriterHarness, s.Seq, evs)
		if err == nil {
			return
		}
		if !errors.Is(err, bus.ErrLostRace) {
			t.Fatal(err)
		}
	}
}

// Background runs a function until stop is called or the test ends, and waits for its end. An error that the function
// returns fails the test, except a canceled context and the errors that are permitted.
func Background(t testing.TB, run func(context.Context) error, permitted ...error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := run(ctx)
		is := func(permitted error) bool { return errors.Is(err, permitted) }
		if err != nil && !is(context.Canceled) && !slices.ContainsFunc(permitted, is) {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}
