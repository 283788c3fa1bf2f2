package outage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/test/service"
)

// caughtUpMax is how long after the load the documents may be behind the log.
const caughtUpMax = time.Minute

// TestServicesFarFromTheBroker: for a while agents append more than services that are 80 ms away can fold, and the
// services are started again meanwhile. Then the documents are up to date within a minute, nothing is lost, and no
// session of a live agent was recovered.
func TestServicesFarFromTheBroker(t *testing.T) {
	t.Parallel()
	const sessions, roundTrip, each = 64, 80 * time.Millisecond, 25 * time.Millisecond
	long := 4 * time.Second
	if os.Getenv(longEnv) != "" {
		long = 20 * time.Second
	}
	s := natstest.Start(t, natstest.Lazy())
	near := natstest.Bus(t, s)
	url := natstest.Far(t, s, roundTrip/2)
	start := func() func() {
		return service.Run(t, natstest.Bus(t, s, func(c *bus.Config) { c.URL = url }))
	}
	stop := start()
	h, err := harness.Connect(t.Context(), harness.Config{ID: me, URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	loaded, end := context.WithTimeout(t.Context(), long)
	defer end()
	var load sync.WaitGroup
	for n := range sessions {
		load.Go(func() { appendFacts(t, loaded, h, fmt.Sprint("s", n), each) })
	}
	for range 2 {
		select {
		case <-time.After(long / 3):
		case <-loaded.Done():
		}
		stop()
		stop = start()
	}
	load.Wait()
	began := time.Now()
	for n := range sessions {
		sameAsLog(t, near, ref(fmt.Sprint("s", n)))
	}
	if took := time.Since(began); took > caughtUpMax {
		t.Errorf("the documents were up to date %s after the load", took)
	}
}

// appendFacts appends turns with a call, one fact at each tick, until ctx ends.
func appendFacts(t *testing.T, ctx context.Context, h *harness.Harness, id string, each time.Duration) {
	s, err := h.Open(t.Context(), id, harness.OpenOptions{})
	tick := time.NewTicker(each)
	defer tick.Stop()
	for n := 0; err == nil && ctx.Err() == nil; n++ {
		turn, call := fmt.Sprint("t", n), fmt.Sprint("c", n)
		for _, f := range []events.Fact{events.TurnStarted{Turn: turn, Cause: events.CauseMessage},
			events.ToolStarted{Call: call, Turn: turn, Name: "bash"}, events.ToolCompleted{Call: call},
			events.TurnCompleted{Turn: turn}} {
			<-tick.C
			if err = s.Append(t.Context(), f); err != nil {
				break
			}
		}
	}
	if err != nil {
		t.Errorf("%s: %v", id, err)
	}
}

// sameAsLog waits until a session's document equals the fold of its log, which has one owner.
func sameAsLog(t *testing.T, b *bus.Bus, r events.Ref) {
	t.Helper()
	st := natstest.Session(t, b, r)
	if st.Epoch != 1 {
		t.Errorf("%s was claimed %d times", r, st.Epoch)
	}
	want, err := st.Encode()
	if err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the document of "+r.String(), func() bool {
		e, err := b.KV.Load(t.Context(), kv.State, events.SessionKey(r))
		return err == nil && bytes.Equal(e.Value, want)
	})
}
