package bustest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// How many writers race, and how often.
const (
	RacersN = 16
	RoundsN = 50
)

// Session is the session of most tests.
var Session = events.Ref{Harness: "h", Session: "s"}

// Fact is one event of a session; its id is what a re-send is recognised by.
func Fact(id string, r events.Ref) events.Event {
	return events.New(id, events.HarnessSource(r.Harness, "1"), r, 1, time.Unix(1, 0),
		events.ToolStarted{Call: "c-" + id, Name: "bash"})
}

// Facts are the events of a commit with one event.
func Facts(id string) []events.Event { return []events.Event{Fact(id, Session)} }

// Within is a context that ends after d, and with the test.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// MustAppend appends a commit for each id and returns the place of the last one.
func MustAppend(t testing.TB, b *bus.Bus, r events.Ref, after uint64, ids ...string) uint64 {
	t.Helper()
	for _, id := range ids {
		seq, err := b.Log.Append(Within(t, Patience), r, events.WriterHarness, after, []events.Event{Fact(id, r)})
		if err != nil {
			t.Fatalf("append %s after %d: %v", id, after, err)
		}
		after = seq
	}
	return after
}

// MustRead reads the commits of a session.
func MustRead(t testing.TB, b *bus.Bus, r events.Ref, from uint64) []events.Commit {
	t.Helper()
	cs, err := b.Log.Read(Within(t, Patience), r, from)
	if err != nil {
		t.Fatalf("read %s from %d: %v", r, from, err)
	}
	return cs
}

// Race lets racers append to one session round after round; in each, exactly one may win, and each must get its true
// result.
func Race(t *testing.T, buses []*bus.Bus, racers, rounds int) {
	t.Helper()
	after := uint64(0)
	for round := range rounds {
		var wg sync.WaitGroup
		seqs, errs := make([]uint64, racers), make([]error, racers)
		for i := range racers {
			wg.Go(func() {
				b := buses[i%len(buses)]
				seqs[i], errs[i] = b.Log.Append(Within(t, Patience), Session, events.WriterHarness, after,
					Facts(fmt.Sprintf("%d-%d", round, i)))
			})
		}
		wg.Wait()
		cs := MustRead(t, buses[0], Session, after+1)
		if len(cs) != 1 {
			t.Fatalf("round %d: %d commits after %d, want 1", round, len(cs), after)
		}
		for i := range racers {
			won := cs[0].Events[0].ID == fmt.Sprintf("%d-%d", round, i)
			if won && (errs[i] != nil || seqs[i] != cs[0].Seq) || !won && !errors.Is(errs[i], bus.ErrLostRace) {
				t.Fatalf("round %d: racer %d got (%d, %v), but the log has %s at %d", round, i, seqs[i], errs[i],
					cs[0].Events[0].ID, cs[0].Seq)
			}
		}
		after = cs[0].Seq
	}
}
