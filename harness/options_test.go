package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestWorkEndsWhileOptionsWaits: Worker.Options, which is given no context, waits for the broker, which is away, and
// the context of Work ends. Work returns, in a session of this process and in one that it would take.
func TestWorkEndsWhileOptionsWaits(t *testing.T) {
	for name, pool := range map[string]bool{"its own session": false, "a session that it takes": true} {
		t.Run(name, func(t *testing.T) {
			// it waits
			t.Parallel()
			w := newWorld(t)
			l := newLine(t, w.server.URL())
			h := w.connect(func(c *harness.Config) { c.URL, c.Pool = l.url, pool })
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			if pool {
				check(t, s.Release(w.ctx, "shutdown"))
			}
			ctx, cancel := context.WithCancel(w.ctx)
			done, begun := make(chan error, 1), make(chan struct{}, 9)
			go func() {
				done <- h.Work(ctx, harness.Worker{
					Options: func(s *harness.Session, _ session.WorkTurn) any {
						l.down.Store(true)
						l.cut()
						begun <- struct{}{}
						// it returns when the broker is back
						all, _, _ := h.Sessions(s.Context())
						return len(all)
					},
					Turn: func(context.Context, *harness.Turn) error { return nil },
				})
			}()
			w.request("s", "t1", "x")
			<-begun
			cancel()
			select {
			case err := <-done:
				check(t, err)
			case <-time.After(harness.LastWordMax + 10*time.Second):
				t.Error("Work waits for Options after its context has ended")
			}
			l.down.Store(false)
		})
	}
}
