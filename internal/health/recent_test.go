package health

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRequestsShareAReport: many requests at the same time are one check of the parts, also if the first client
// disconnects. Its result is used for a moment, and then there is a new check.
func TestRequestsShareAReport(t *testing.T) {
	const requests = 50
	s := start(t)
	var checks, pending atomic.Uint64
	asked, open := make(chan struct{}, 1), make(chan struct{})
	s.Add(Part{Name: "p", Connected: yes, ReadyLagMax: 10, Consumers: []Consumer{{Name: "c",
		Lag: func(ctx context.Context) (uint64, string, error) {
			if checks.Add(1) == 1 {
				asked <- struct{}{}
			}
			<-open
			if errors.Is(ctx.Err(), context.Canceled) {
				return 0, "", ctx.Err()
			}
			return pending.Load(), "x", nil
		}}}})
	s.Started()
	began := time.Now()
	ctx, disconnect := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { s.recent(ctx) })
	<-asked
	disconnect()
	for i := range requests {
		all.Go(func() {
			if code, body := get(t, s.URL()+[]string{"/readyz", "/metrics"}[i%2]); code != http.StatusOK {
				t.Errorf("status %d: %s", code, body)
			}
		})
	}
	close(open)
	all.Wait()
	// on a slow machine
	most := 1 + uint64(time.Since(began)/(reportKeptMS*time.Millisecond))
	if n := checks.Load(); n > most {
		t.Errorf("%d checks for %d requests, want at most %d", n, requests, most)
	}
	pending.Store(11)
	// until a new check
	for code := http.StatusOK; code == http.StatusOK; {
		code, _ = get(t, s.URL()+"/readyz")
	}
}
