package bus_test

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestSubscribeWhileTheBrokerRestarts: a process that subscribes at the instant at which its broker is lost waits for
// the broker. A service that starts then must not end.
func TestSubscribeWhileTheBrokerRestarts(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx := background(t)
	again, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range 4 { // some of them wait for the broker's reply whenever it goes away
		all.Go(func() {
			for again.Err() == nil {
				one, cancel := context.WithCancel(ctx)
				if err := b.OnProgress(one, func(events.Ref) {}); err != nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	for range 3 {
		s = natstest.Restart(t, s)
	}
	stop()
	all.Wait()
}
