package retry_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// pendingCount returns how many retries wait at the same time: a million in `make long`.
func pendingCount() int {
	if os.Getenv("HOLDFAST_LONG") != "" {
		return 1_000_000
	}
	return 3_000
}

// armedMax is the time limit for arming all alarms.
const armedMax = 30 * time.Minute

// TestManyPending: the maximum number of retries wait for a late instant, with one alarm each. A retry that is due soon
// is on time, also after a restart of the service.
func TestManyPending(t *testing.T) {
	server := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, server))
	b := natstest.Bus(t, server)
	stop := c.serve(b, retry.Default())
	n := pendingCount()
	const atOnce = 1_000
	for i := 0; i < n; i += atOnce {
		var under []bus.Pending
		for k := i; k < min(i+atOnce, n); k++ {
			under = append(under, c.failFar(fmt.Sprint("far", k)))
		}
		for _, p := range under {
			if _, err := p.Wait(c.ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	armed := func() int {
		t.Helper()
		found, err := b.Layout.Inspect(c.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found.Streams {
			if s.Name == b.Cell().TimerStream() {
				return int(s.Msgs)
			}
		}
		return 0
	}
	for end := time.Now().Add(armedMax); armed() < n; <-time.After(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d retries have an alarm", armed(), n)
		}
	}
	soon := func(name string) {
		t.Helper()
		pulse := natstest.Feel(t)
		c.opened(name, nil)
		c.append(name, failed("t1", "server_error"))
		c.until(name, "to be asked for again", starting)
		s, _ := c.read(name)
		if _, at := c.ofKind(name, "turn.requested"); len(at) != 1 ||
			at[0].Sub(s.LastTurn.At)-2*time.Second > lateMax+pulse.Lost() {
			t.Errorf("%s: requested at %v, failed at %s", name, at, s.LastTurn.At)
		}
	}
	soon("before")
	stop()
	c.serve(b, retry.Default())
	soon("after")
	if s, commits := c.read("far0"); !scheduled(s) || s.Retry.Attempt != 1 || len(commits) != 2 {
		t.Errorf("far0: %+v", s.Retry)
	}
	if k := armed(); k < n || k > n+10 {
		t.Errorf("%d alarms for %d retries", k, n)
	}
}

// failFar fails a turn with a Retry-After of 15 minutes.
func (c *cell) failFar(name string) bus.Pending {
	evs := make([]events.Event, 0, 3)
	for _, f := range []events.Fact{events.SessionOpened{Incarnation: "1"},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
		events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit", RetryAfterMS: 900_000}}} {
		evs = append(evs, events.New(c.b.NewID(), events.HarnessSource("h", "1"), ref(name), 1, time.Now(), f))
	}
	return c.b.Log.AppendAsync(c.ctx, ref(name), events.WriterHarness, 0, evs)
}
