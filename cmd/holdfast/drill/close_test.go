package drill

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// A ledger that is slow with one session does not take the time of the others: all are closed at once. This ledger
// replies to no request before it has all of them.
func TestSessionsAreClosedAtOnce(t *testing.T) {
	const sessions = 8
	b := natstest.Bus(t, natstest.Start(t))
	var arrived sync.WaitGroup
	arrived.Add(sessions)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- b.Services.Serve(ctx, request.LedgerClose.Service, "1.0.0", "a ledger of a test",
			[]rpc.Endpoint{{Verb: "probe", Handle: func(context.Context, []byte) ([]byte, error) {
				return []byte("{}"), nil
			}}, {Verb: request.LedgerClose.Name, TimeMax: time.Hour,
				Handle: func(context.Context, []byte) ([]byte, error) {
					arrived.Done()
					arrived.Wait()
					return []byte("{}"), nil
				}}})
	}()
	natstest.Until(t, "the ledger", func() bool {
		return b.Services.Request(t.Context(), request.LedgerClose.Service, "probe", struct{}{}, nil) == nil
	})
	var all []events.Ref
	for i := range sessions {
		all = append(all, events.Ref{Harness: "h", Session: fmt.Sprintf("s%d", i)})
	}
	if failed := closeWithin(t.Context(), b.Services, all, time.Minute); len(failed) > 0 {
		t.Errorf("not closed: %v", failed)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
